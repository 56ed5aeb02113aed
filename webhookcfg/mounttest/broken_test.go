package mounttest_test

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg/mounttest"
)

// rewriting is a proxy that changes the request target, which the handler can't see.
func rewriting(change func(r *http.Request, target string) string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			target := change(r, r.RequestURI)
			u, err := url.ParseRequestURI(target)
			if err != nil {
				http.Error(w, "bad target", http.StatusBadRequest)
				return
			}
			r.URL, r.RequestURI = u, target
			next.ServeHTTP(w, r)
		})
	}
}

// onPath applies a change to the path alone.
func onPath(change func(escaped string) string) func(http.Handler) http.Handler {
	return rewriting(func(_ *http.Request, target string) string {
		escaped, query, found := strings.Cut(target, "?")
		if escaped = change(escaped); found {
			escaped += "?" + query
		}
		return escaped
	})
}

// decoding decodes a path a number of times, and then escapes only what must be.
func decoding(times int) func(escaped string) string {
	return func(escaped string) string {
		for range times {
			if decoded, err := url.PathUnescape(escaped); err == nil {
				escaped = decoded
			}
		}
		return (&url.URL{Path: escaped}).EscapedPath()
	}
}

var clean = onPath(path.Clean)

func replaceAll(old, by string) func(string) string {
	return func(escaped string) string { return strings.ReplaceAll(escaped, old, by) }
}

// replace also cleans the path.
func replace(old, by string) func(string) string {
	return func(escaped string) string { return path.Clean(strings.ReplaceAll(escaped, old, by)) }
}

func before(separator string) func(string) string {
	return func(target string) string {
		target, _, _ = strings.Cut(target, separator)
		return target
	}
}

// onlyIf applies a change to the requests that meet a condition, and others to the rest.
func onlyIf(condition func(*http.Request) bool, broken func(http.Handler) http.Handler, others ...func(http.Handler) http.Handler) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		changed, rest := broken(next), next
		for _, other := range others {
			rest = other(rest)
		}
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if condition(r) {
				changed.ServeHTTP(w, r)
				return
			}
			rest.ServeHTTP(w, r)
		})
	}
}

func isDelete(r *http.Request) bool { return r.Method == http.MethodDelete }

// broken are mounts that widen requests or redirect them, with the classes of requests that
// must show it. Without the first class, they would pass.
var broken = []struct {
	name    string
	around  func(http.Handler) http.Handler
	classes []string
}{
	{"cleans the path", clean, []string{"dots", "slashes", "set", "variant", "HTTP/1.0"}},
	{"merges slashes", onPath(replaceAll("//", "/")), []string{"slashes"}},
	{"decodes once and cleans", onPath(func(p string) string { return path.Clean(decoding(1)(p)) }), []string{"escapes", "dots"}},
	{"decodes without cleaning", onPath(decoding(1)), []string{"escapes"}},
	{"decodes twice and cleans", onPath(func(p string) string { return path.Clean(decoding(2)(p)) }), []string{"double escapes", "escapes"}},
	{"drops the second escape", onPath(func(p string) string { return path.Clean(strings.ReplaceAll(p, "%252f", "/")) }), []string{"double escapes"}},
	{"treats a backslash as a slash", onPath(replace(`\`, "/")), []string{"backslash"}},
	{"treats an escaped backslash as a slash", onPath(replace("%5c", "/")), []string{"backslash"}},
	{"cuts path parameters", onPath(before(";")), []string{"semicolon"}},
	{"cuts the fragment", rewriting(func(_ *http.Request, target string) string { return before("#")(target) }), []string{"fragment"}},
	{"cuts the escaped fragment", onPath(before("%23")), []string{"fragment"}},
	{"cuts at NUL", onPath(before("%00")), []string{"controls"}},
	{"trims spaces", onPath(func(p string) string { return strings.TrimRight(p, "%20") }), []string{"escapes"}},
	{"drops the query", rewriting(func(_ *http.Request, target string) string { return before("?")(target) }), []string{"query"}},
	{"drops the empty query", rewriting(func(_ *http.Request, target string) string { return strings.TrimSuffix(target, "?") }), []string{"query"}},
	{"drops the body", onlyIf(isDelete, dropBody), []string{"body"}},
	{"drops chunked bodies", onlyIf(func(r *http.Request) bool { return isDelete(r) && r.ContentLength < 0 }, dropBody), []string{"body"}},
	{"drops null from JSON", rewriteJSON(func(key string, value any) bool { return value != nil }), []string{"JSON"}},
	{"drops empty values from JSON", rewriteJSON(func(key string, value any) bool { return value != "" }), []string{"JSON"}},
	{"drops unknown keys from JSON", rewriteJSON(func(key string, value any) bool { return key == "endpoint_id" || key == "webhook_url" }), []string{"JSON"}},
	{"overrides the method", overrideMethod, []string{"method"}},
	{"honours the original target of a client", rewriting(func(r *http.Request, target string) string {
		return cmp.Or(r.Header.Get("X-Original-URI"), target)
	}), []string{"original target"}},
	{"trims the slash of a POST", onlyIf(func(r *http.Request) bool { return !isDelete(r) }, onPath(func(p string) string { return strings.TrimRight(p, "/") })), []string{"set"}},
	{"drops what follows the resource of a POST", onlyIf(func(r *http.Request) bool { return r.Method == "POST" }, onPath(func(p string) string {
		return before("/mounttest-entity")(p)
	})), []string{"set"}},
	{"cleans one resource", onlyIf(func(r *http.Request) bool { return strings.Contains(r.RequestURI, "configuration") }, clean), []string{"variant"}},
	{"cleans HTTP/1.0", onlyIf(func(r *http.Request) bool { return r.ProtoMinor == 0 && r.ProtoMajor == 1 }, clean), []string{"HTTP/1.0"}},
	{"cleans the absolute form", onlyIf(func(r *http.Request) bool { return r.URL.IsAbs() }, rewriting(func(r *http.Request, _ string) string {
		return path.Clean(r.URL.EscapedPath())
	})), []string{"absolute form"}},
	{"finds the absolute form anywhere", rewriting(func(_ *http.Request, target string) string {
		if _, rest, found := strings.Cut(target, "://"); found {
			return rest[strings.Index(rest, "/"):]
		}
		return target
	}), []string{"absolute form"}},
	{"cleans what no route matches", onlyIf(func(r *http.Request) bool { return !strings.HasPrefix(r.RequestURI, "/hooks/") }, onPath(func(p string) string {
		return "/hooks" + path.Clean(p)[len("/hooks"):]
	})), []string{"prefix"}},
	{"strips the prefix after cleaning", onPath(func(p string) string { return "/hooks" + strings.TrimPrefix(path.Clean(p), "/hooks") }), []string{"dots", "slashes"}},
	{"redirects to the clean path", func(next http.Handler) http.Handler {
		mux := http.NewServeMux()
		mux.Handle("/hooks/", next)
		return mux
	}, []string{"dots", "slashes"}},
	{"redirects to a URL", func(next http.Handler) http.Handler {
		return onlyIf(func(r *http.Request) bool { return strings.Contains(r.RequestURI, "..") }, func(http.Handler) http.Handler {
			return http.RedirectHandler("https://hooks.example.com/API/v1/configure/x/%252e%252e/configure-webhook;x/?y", http.StatusFound)
		})(next)
	}, []string{"dots"}},
	{"redirects to a relative path", func(next http.Handler) http.Handler {
		return onlyIf(func(r *http.Request) bool { return strings.HasSuffix(r.RequestURI, "/mounttest-entity/..") }, func(http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Location", "..?x")
				w.WriteHeader(http.StatusPermanentRedirect)
			})
		})(next)
	}, []string{"dots"}},
	{"cleans, and refuses requests without a User-Agent", onlyIf(lacks("User-Agent"), refuse, clean), []string{"dots"}},
	{"cleans, and refuses requests without Accept", onlyIf(lacks("Accept"), refuse, clean), []string{"dots"}},
	{"cleans, and refuses requests that close the connection", onlyIf(func(r *http.Request) bool { return r.Close && r.ProtoMinor == 1 }, refuse, clean), []string{"dots"}},
	{"cleans the second request over a connection", onlyIf(isSecond, clean), []string{"kept alive"}},
	{"drops null from the second request over a connection", onlyIf(isSecond, rewriteJSON(func(_ string, value any) bool { return value != nil })), []string{"JSON"}},
	{"cleans HTTP/1.0, and refuses it without a User-Agent", onlyIf(func(r *http.Request) bool { return r.ProtoMinor == 0 && r.ProtoMajor == 1 }, onlyIf(lacks("User-Agent"), refuse, clean)), []string{"HTTP/1.0"}},
	{"treats the absolute form as all", onlyIf(func(r *http.Request) bool { return r.URL.IsAbs() }, rewriting(func(*http.Request, string) string {
		return resource
	})), []string{"correct"}},
	{"trims dots", onPath(func(p string) string { return strings.TrimRight(p, ".") }), []string{"dots"}},
	{"cuts custom verbs", onPath(before(":")), []string{"names"}},
	{"splits a list of identifiers", splitList(","), []string{"separators"}},
	{"splits at an escaped comma", splitList("%2c"), []string{"separators"}},
	{"finds the resource behind any prefix", rewriting(func(_ *http.Request, target string) string {
		return target[max(strings.LastIndex(target, resource), 0):]
	}), []string{"nested"}},
	{"normalises Unicode and cleans", onPath(func(p string) string {
		decoded, err := url.PathUnescape(p)
		if err != nil {
			return p
		}
		return (&url.URL{Path: path.Clean(compatible.Replace(decoded))}).EscapedPath()
	}), []string{"Unicode"}},
	{"trims white space of Unicode", onPath(func(p string) string {
		decoded, err := url.PathUnescape(p)
		if err != nil {
			return p
		}
		return (&url.URL{Path: strings.TrimSpace(decoded)}).EscapedPath()
	}), []string{"Unicode", "escapes"}},
	{"decodes entities of HTML", rewriting(func(_ *http.Request, target string) string { return path.Clean(html.UnescapeString(target)) }), []string{"other escapes"}},
	{"rewrites to X-Rewrite-URL", rewriting(func(r *http.Request, target string) string { return cmp.Or(r.Header.Get("X-Rewrite-URL"), target) }), []string{"original target"}},
	{"rewrites a stripped path to X-Original-URL", rewriting(func(r *http.Request, target string) string {
		if original := r.Header.Get("X-Original-URL"); original != "" && !strings.HasPrefix(original, "/hooks") {
			return "/hooks" + original
		}
		return target
	}), []string{"original target"}},
	{"turns a form into JSON", formToJSON, []string{"JSON"}},
	{"trims blanks in JSON", rewriteJSON(func(_ string, value any) bool {
		text, isText := value.(string)
		return !isText || strings.TrimSpace(text) != ""
	}), []string{"JSON"}},
	{"drops the word null from JSON", rewriteJSON(func(_ string, value any) bool { return value != "null" }), []string{"JSON"}},
	{"drops long names from JSON", rewriteJSON(func(key string, value any) bool {
		text, _ := value.(string)
		return key == "webhook_url" || len(text) < 256
	}), []string{"JSON"}},
	{"looks for the identifier in 256 bytes of JSON", shortJSON(256), []string{"JSON"}},
	{"looks up identifiers in JSON", rewriteJSON(func(key string, value any) bool {
		return key == "webhook_url" || value == "mounttest-entity" || value == "mounttest-witness"
	}), []string{"JSON"}},
	{"looks up identifiers", onPath(func(p string) string {
		if id, found := strings.CutPrefix(p, resource+"/"); found && id != "mounttest-entity" && id != "mounttest-witness" && !strings.Contains(id, "/") {
			return resource
		}
		return p
	}), []string{"names", "dots"}},
	{"looks up only well-formed identifiers", onPath(func(p string) string {
		if id := path.Base(p); strings.HasSuffix(id, "-unknown") {
			return resource
		}
		return p
	}), []string{"names"}},
	{"drops placeholders", onPath(func(p string) string { return strings.TrimSuffix(p, "/:endpoint_id") }), []string{"names"}},
	{"drops undefined", onPath(func(p string) string { return strings.TrimSuffix(p, "undefined") }), []string{"names"}},
	{"drops names of 256 bytes", onPath(func(p string) string {
		if len(path.Base(p)) >= 256 {
			return path.Dir(p)
		}
		return p
	}), []string{"long"}},
	{"cuts targets at 256 bytes", rewriting(func(_ *http.Request, target string) string { return path.Clean(target[:min(len(target), 256)]) }), []string{"long", "dots"}},
	{"drops a long query", rewriting(func(_ *http.Request, target string) string {
		if before, query, _ := strings.Cut(target, "?"); len(query) > 256 {
			return before
		}
		return target
	}), []string{"long"}},
	{"overrides the method of a POST without its body", onlyIf(func(r *http.Request) bool { return r.Method == "POST" }, func(next http.Handler) http.Handler {
		return onlyIf(func(r *http.Request) bool { return r.Header.Get("X-HTTP-Method-Override") != "" }, func(next http.Handler) http.Handler { return dropBody(overrideMethod(next)) })(next)
	}), []string{"method"}},
	{"takes the method from the query", onlyIf(func(r *http.Request) bool { return strings.HasSuffix(r.RequestURI, "?_method=DELETE") }, func(next http.Handler) http.Handler {
		return dropBody(asDelete(next))
	}), []string{"method"}},
	{"takes the method from a form", onlyIf(func(r *http.Request) bool {
		return strings.Contains(r.Header.Get("Content-Type"), "form") && !isDelete(r)
	}, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.FormValue("_method") == http.MethodDelete {
				dropBody(asDelete(next)).ServeHTTP(w, r)
			}
		})
	}), []string{"method"}},
	{"strips .json", onPath(func(p string) string { return strings.TrimSuffix(p, ".json") }), []string{"formats"}},
	{"strips any extension", onPath(func(p string) string { return strings.TrimSuffix(p, path.Ext(p)) }), []string{"formats"}},
	{"strips an index", onPath(func(p string) string {
		if strings.HasPrefix(path.Base(p), "index") {
			return path.Dir(p)
		}
		return p
	}), []string{"formats"}},
	{"strips verbs", onPath(func(p string) string {
		return strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(p, "/edit"), "/delete"), "/new")
	}), []string{"formats"}},
	{"strips a tilde", onPath(func(p string) string { return strings.TrimSuffix(p, "~") }), []string{"formats"}},
	{"cuts targets at 4 KiB", cutting(4 << 10), []string{"long"}},
	{"cuts targets at 8 KiB", cutting(8 << 10), []string{"long"}},
	{"cuts targets at 64 KiB", cutting(64 << 10), []string{"long"}},
	{"drops a query of 16 KiB", rewriting(func(_ *http.Request, target string) string {
		if before, query, _ := strings.Cut(target, "?"); len(query) > 16<<10 {
			return before
		}
		return target
	}), []string{"long"}},
	{"drops bodies of 8 KiB", onlyIf(func(r *http.Request) bool { return isDelete(r) && r.ContentLength > 8<<10 }, dropBody), []string{"body"}},
	{"looks for the identifier in 8 KiB of JSON", shortJSON(8 << 10), []string{"JSON"}},
	{"treats PUT as POST without the path", asPost("PUT", resource), []string{"method"}},
	{"treats PATCH as POST without the path", asPost("PATCH", resource), []string{"method"}},
	{"treats PATCH with null as a DELETE", onlyIf(func(r *http.Request) bool { return r.Method == "PATCH" }, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if data, _ := io.ReadAll(r.Body); bytes.Contains(data, []byte("null")) {
				dropBody(asDelete(next)).ServeHTTP(w, r)
			}
		})
	}), []string{"method"}},
	{"treats PURGE as a DELETE of what is above", onlyIf(func(r *http.Request) bool { return r.Method == "PURGE" }, func(next http.Handler) http.Handler {
		return onPath(path.Dir)(asDelete(next))
	}), []string{"method"}},
	{"takes the method from another field", onlyIf(func(r *http.Request) bool { return r.Header.Get("X-Original-Method") != "" }, func(next http.Handler) http.Handler {
		return dropBody(asDelete(next))
	}), []string{"method"}},
	{"takes the method in small letters from the query", onlyIf(func(r *http.Request) bool { return r.URL.Query().Get("_method") == "delete" }, func(next http.Handler) http.Handler {
		return dropBody(asDelete(next))
	}), []string{"method"}},
	{"takes the method from another query", onlyIf(func(r *http.Request) bool { return r.URL.Query().Get("method") == "DELETE" }, func(next http.Handler) http.Handler {
		return dropBody(asDelete(next))
	}), []string{"method"}},
	{"takes the method from JSON", onlyIf(func(r *http.Request) bool { return r.Method == "POST" }, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			data, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(data))
			if bytes.Contains(data, []byte(`"_method"`)) {
				dropBody(asDelete(next)).ServeHTTP(w, r)
				return
			}
			next.ServeHTTP(w, r)
		})
	}), []string{"method"}},
	{"strips a language", onPath(func(p string) string { return strings.TrimSuffix(strings.TrimSuffix(p, "/"), "/en") }), []string{"languages"}},
	{"strips a language and a country", onPath(func(p string) string { return regexp.MustCompile(`/[a-z]{2}[-_][A-Z]{2}$`).ReplaceAllString(p, "") }), []string{"languages"}},
	{"strips a version", onPath(func(p string) string { return regexp.MustCompile(`[/@](v?[0-9]+|latest)$`).ReplaceAllString(p, "") }), []string{"languages"}},
	{"strips a session id", onPath(func(p string) string { return regexp.MustCompile(`[;,](jsessionid|sid)=[^/]*`).ReplaceAllString(p, "") }), []string{"sessions"}},
	{"strips a session id in a segment", onPath(func(p string) string { return regexp.MustCompile(`/\(S\([^)]*\)\)`).ReplaceAllString(p, "") }), []string{"sessions"}},
	{"expands wildcards", onPath(func(p string) string { return strings.TrimRight(strings.TrimRight(p, "*"), "/") }), []string{"wildcards"}},
	{"drops bodies with an encoding", onlyIf(func(r *http.Request) bool { return isDelete(r) && r.Header.Get("Content-Encoding") != "" }, dropBody), []string{"body"}},
	{"drops bodies of another type", onlyIf(func(r *http.Request) bool { return isDelete(r) && r.Header.Get("Content-Type") != "application/json" }, dropBody), []string{"body"}},
	{"drops bodies below a large header", onlyIf(func(r *http.Request) bool { return isDelete(r) && len(r.Header.Get("X-Padding")) > 5000 }, dropBody), []string{"body"}},
	{"drops words for nothing from JSON", rewriteJSON(func(_ string, value any) bool { return value != "none" && value != "false" && value != "0" }), []string{"JSON"}},
	{"drops comments from JSON", rewriteBody(func(body string) string { return regexp.MustCompile(`/\*.*\*/`).ReplaceAllString(body, "") }), []string{"JSON"}},
	{"drops what isn't JSON", rewriteBody(func(body string) string {
		return regexp.MustCompile(`"endpoint_id":(NaN|undefined|'[^']*'),`).ReplaceAllString(body, "")
	}), []string{"JSON"}},
	{"overrides the method of a GET", onlyIf(func(r *http.Request) bool { return r.Method == "GET" }, overrideMethod), []string{"method"}},
}

func dropBody(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body, r.ContentLength = http.NoBody, 0
		r.Header.Del("Content-Length")
		r.Header.Del("Expect")
		next.ServeHTTP(w, r)
	})
}

// rewriteJSON is a gateway that decodes and encodes bodies, and keeps some of their keys.
func rewriteJSON(keep func(key string, value any) bool) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			data, err := io.ReadAll(r.Body)
			var object map[string]any
			if err == nil && json.Unmarshal(data, &object) == nil {
				for key, value := range object {
					if !keep(key, value) {
						delete(object, key)
					}
				}
				data, _ = json.Marshal(object)
			}
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(data)), int64(len(data))
			next.ServeHTTP(w, r)
		})
	}
}

// rewriteBody is a gateway that changes the text of bodies.
func rewriteBody(change func(body string) string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			data, _ := io.ReadAll(r.Body)
			data = []byte(change(string(data)))
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(data)), int64(len(data))
			next.ServeHTTP(w, r)
		})
	}
}

// asDelete makes every request a DELETE of its path.
func asDelete(next http.Handler) http.Handler {
	return rewriting(func(r *http.Request, target string) string {
		r.Method = http.MethodDelete
		return before("?")(target)
	})(next)
}

func overrideMethod(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if method := r.Header.Get("X-HTTP-Method-Override"); method != "" {
			r.Method = method
		}
		next.ServeHTTP(w, r)
	})
}

func refuse(http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "refused", http.StatusForbidden) })
}

func lacks(field string) func(*http.Request) bool {
	return func(r *http.Request) bool { return r.Header.Get(field) == "" }
}

// requests is the key of the number of requests over a connection.
type requests struct{}

// isSecond counts the requests over a connection. The client of net/http sends many.
func isSecond(r *http.Request) bool {
	n, _ := r.Context().Value(requests{}).(*atomic.Int64)
	return n != nil && n.Add(1) == 2 && !strings.HasSuffix(r.RequestURI, "-witness")
}

// splitList serves a DELETE of each element of a list.
func splitList(separator string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			list, found := strings.CutPrefix(r.RequestURI, resource+"/")
			if !found || !strings.Contains(list, separator) {
				next.ServeHTTP(w, r)
				return
			}
			for id := range strings.SplitSeq(list, separator) {
				onPath(func(string) string { return resource + "/" + id })(next).ServeHTTP(httptest.NewRecorder(), r.Clone(r.Context()))
			}
		})
	}
}

// compatible is what normalisation NFKC does to some characters.
var compatible = strings.NewReplacer("．", ".", "／", "/", "＼", `\`, "‥", "..", "․", ".", "…", "...", "；", ";", "？", "?", "＃", "#")

func formToJSON(next http.Handler) http.Handler {
	return onlyIf(func(r *http.Request) bool { return strings.Contains(r.Header.Get("Content-Type"), "form") }, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			object := make(map[string]string)
			for _, key := range []string{"endpoint_id", "webhook_url"} {
				if value := r.FormValue(key); value != "" {
					object[key] = value
				}
			}
			data, _ := json.Marshal(object)
			r.Header.Set("Content-Type", "application/json")
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(data)), int64(len(data))
			next.ServeHTTP(w, r)
		})
	})(next)
}

// cutting cuts targets, and what is left of the last segment.
func cutting(size int) func(http.Handler) http.Handler {
	return rewriting(func(_ *http.Request, target string) string {
		if len(target) <= size {
			return target
		}
		target = target[:size]
		if path, _, found := strings.Cut(target, "?"); found {
			return path
		}
		return target[:strings.LastIndex(target, "/")]
	})
}

// asPost makes a POST to a target of requests with another method.
func asPost(method, target string) func(http.Handler) http.Handler {
	return onlyIf(func(r *http.Request) bool { return r.Method == method }, rewriting(func(r *http.Request, _ string) string {
		r.Method = http.MethodPost
		return target
	}))
}

// shortJSON is a gateway that reads the start of a body only.
func shortJSON(size int) func(http.Handler) http.Handler {
	return onlyIf(func(r *http.Request) bool { return r.Method == "POST" }, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			data, _ := io.ReadAll(r.Body)
			if !bytes.Contains(data[:min(len(data), size)], []byte("endpoint_id")) && bytes.Contains(data, []byte("endpoint_id")) {
				data = []byte(`{"webhook_url":"` + hookURL + `"}`)
			}
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(data)), int64(len(data))
			next.ServeHTTP(w, r)
		})
	})
}

// recorder records the request lines that reach a handler.
type recorder struct {
	http.Handler
	mu       sync.Mutex
	received []string
}

func (h *recorder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	h.received = append(h.received, r.Method+" "+r.RequestURI)
	h.mu.Unlock()
	h.Handler.ServeHTTP(w, r)
}

func (h *recorder) take() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	taken := h.received
	h.received = nil
	return taken
}

// TestBroken: every broken mount fails, and for the requests that it gets wrong.
func TestBroken(t *testing.T) {
	for _, tt := range broken {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			st := store.NewMemory()
			inner := &recorder{Handler: newHandler(t, st, hooks)}
			target := serve(t, tt.around(inner), false)
			target.Received, target.Resolve = inner.take, resolve(st)
			classes := slices.Clone(tt.classes)
			if *mounttest.Full || slices.Contains(classes, "correct") { // a request before those of a class
				classes = append(classes, "absolute form")
			}
			report, err := mounttest.CheckClasses(t.Context(), target, classes)
			if err != nil {
				t.Fatal(err)
			}
			classes = nil // of the failures
			for _, f := range report.Failures {
				classes = append(classes, f.Class)
				checkFailure(t, f)
			}
			for _, class := range tt.classes {
				if !slices.Contains(classes, class) {
					t.Errorf("no failure of class %s in %v", class, slices.Compact(classes))
				}
			}
		})
	}
}

// TestBrokenBytes: the servers of net/http refuse some targets themselves. So a proxy that
// gets these wrong has to work on bytes.
func TestBrokenBytes(t *testing.T) {
	for _, tt := range []struct {
		old, by, class string
	}{
		{"%u002f", "/", "other escapes"},
		{"%u002e", ".", "other escapes"},
		{"%uff0e", ".", "other escapes"},
		{"/%", "/", "escapes"},
		{"\x00", "", "controls"},
	} {
		t.Run(tt.old, func(t *testing.T) {
			t.Parallel()
			st := store.NewMemory()
			target := serve(t, clean(newHandler(t, st, hooks)), false)
			target.Resolve = resolve(st)
			target.BaseURL = "http://" + replaceBytes(t, strings.TrimPrefix(strings.TrimSuffix(target.BaseURL, "/hooks"), "http://"), tt.old, tt.by) + "/hooks"
			isClass := func(f mounttest.Failure) bool {
				return f.Class == tt.class && strings.Contains(f.Request, strings.Trim(fmt.Sprintf("%q", tt.old), `"`))
			}
			if report, err := mounttest.CheckClasses(t.Context(), target, []string{tt.class}); err != nil || !slices.ContainsFunc(report.Failures, isClass) {
				t.Errorf("no failure of class %s, %v", tt.class, err)
			}
		})
	}
}

// replaceBytes starts a proxy that changes the first request line of a connection. It
// returns its address.
func replaceBytes(t testing.TB, upstream, old, by string) string {
	t.Helper()
	return proxyBytes(t, upstream, func(out io.Writer, r *bufio.Reader) {
		line, _ := r.ReadString('\n')
		_, _ = io.WriteString(out, strings.ReplaceAll(line, old, by))
		_, _ = io.Copy(out, r)
	})
}

// proxyBytes starts a proxy that passes on what clients send, and returns its address.
func proxyBytes(t testing.TB, upstream string, pass func(out io.Writer, r *bufio.Reader)) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	serve := func(conn net.Conn) {
		defer conn.Close()
		out, err := net.Dial("tcp", upstream)
		if err != nil {
			return
		}
		defer out.Close()
		go func() {
			pass(out, bufio.NewReader(conn))
			_ = out.(*net.TCPConn).CloseWrite()
		}()
		_, _ = io.Copy(conn, out)
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go serve(conn)
		}
	}()
	return listener.Addr().String()
}

// TestBrokenFraming: a server that ignores a malformed length doesn't see the body, which names
// an entity. The server of net/http refuses these lengths, so the proxy works on bytes.
func TestBrokenFraming(t *testing.T) {
	for _, ignored := range []string{"Content-Length :", "Content-Length\t:", "Content-Length: +", "Content-Length: 0x", "Transfer-Encoding :", "Transfer-Encoding: \v"} {
		t.Run(ignored, func(t *testing.T) {
			t.Parallel()
			st := store.NewMemory()
			target := serve(t, newHandler(t, st, hooks), false)
			target.Resolve = resolve(st)
			address := strings.TrimSuffix(strings.TrimPrefix(target.BaseURL, "http://"), "/hooks")
			target.BaseURL = "http://" + dropFields(t, address, ignored) + "/hooks"
			report, err := mounttest.CheckClasses(t.Context(), target, []string{"body"})
			if err != nil || len(report.Failures) == 0 {
				t.Fatalf("got %v, %v", report, err)
			}
			for _, f := range report.Failures {
				if !strings.Contains(f.Request, strings.Trim(fmt.Sprintf("%q", ignored), `"`)) {
					t.Errorf("got %v", f)
				}
			}
		})
	}
}

// dropFields starts a proxy that drops the lines with a prefix from the head of the first
// request over a connection, and then what follows the head. It returns its address.
func dropFields(t testing.TB, upstream, prefix string) string {
	t.Helper()
	return proxyBytes(t, upstream, func(out io.Writer, r *bufio.Reader) {
		dropped := false
		for {
			line, err := r.ReadString('\n')
			if drop := strings.HasPrefix(line, prefix); drop {
				dropped = true
			} else {
				_, _ = io.WriteString(out, line)
			}
			if err != nil || line == "\r\n" {
				break
			}
		}
		if dropped {
			out = io.Discard // the connection stays open, or the server would give up the request
		}
		_, _ = io.Copy(out, r)
	})
}

// checkFailure checks that a failure has the request, the advice, and what the application
// got.
func checkFailure(t *testing.T, f mounttest.Failure) {
	t.Helper()
	redirects := f.Status >= 300 && f.Status < 400
	if redirects != (f.Outcome == mounttest.Redirected) || redirects != (f.Location != "") {
		t.Errorf("status %d, location %q: %v", f.Status, f.Location, f)
	}
	if redirects == strings.Contains(f.Received, "configure-webhook") || f.Advice == "" || !strings.Contains(f.Request, "HTTP/1.") || len(f.Request) > 4000 {
		t.Errorf("incomplete: %+v", f)
	}
}

// TestUnencryptedHTTP2: the check uses HTTP/2 without TLS too, if the server speaks it.
func TestUnencryptedHTTP2(t *testing.T) {
	isHTTP2 := func(r *http.Request) bool { return r.ProtoMajor == 2 }
	server := httptest.NewUnstartedServer(onlyIf(isHTTP2, clean)(newHandler(t, store.NewMemory(), hooks)))
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetHTTP1(true)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	t.Cleanup(server.Close)
	report, err := mounttest.CheckClasses(t.Context(), mounttest.Target{
		BaseURL: server.URL + "/hooks", ClientID: client, Secret: secret, WebhookURL: hookURL, Timeout: time.Minute,
	}, []string{"dots"})
	if err != nil || len(report.Failures) == 0 || report.Failures[0].Form != "HTTP/2" || !report.HTTP2 || len(report.NotChecked) > 0 {
		t.Errorf("got %v, %v", report, err)
	}
}

// TestHTTP2 checks the requests that are sent over HTTP/2.
func TestHTTP2(t *testing.T) {
	isHTTP2 := func(r *http.Request) bool { return r.ProtoMajor == 2 }
	for _, tt := range []struct {
		name    string
		around  func(http.Handler) http.Handler
		classes []string
	}{
		{"cleans the path", clean, []string{"dots", "variant", "set"}},
		{"cuts at a semicolon", onPath(before(";")), []string{"semicolon"}},
		{"cuts the query", rewriting(func(_ *http.Request, target string) string { return before("?")(target) }), []string{"query"}},
		{"drops the body of a DELETE", onlyIf(isDelete, dropBody), []string{"body"}},
		{"drops a null", rewriteJSON(func(_ string, value any) bool { return value != nil }), []string{"JSON"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			target := serve(t, onlyIf(isHTTP2, tt.around)(newHandler(t, store.NewMemory(), hooks)), true)
			report, err := mounttest.CheckClasses(t.Context(), target, tt.classes)
			if err != nil {
				t.Fatal(err)
			}
			var classes []string
			for _, f := range report.Failures {
				classes = append(classes, f.Class)
				if !strings.Contains(f.Request, "HTTP/2") {
					t.Errorf("failed, but not over HTTP/2: %v", f)
				}
			}
			for _, class := range tt.classes {
				if !slices.Contains(classes, class) {
					t.Errorf("no failure of class %s in %v", class, slices.Compact(classes))
				}
			}
		})
	}
}
