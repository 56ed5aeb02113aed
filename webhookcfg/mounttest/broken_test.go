package mounttest_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"testing"

	"example.com/go-webhookcfg/internal/pathtest"
	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg/mounttest"
)

// rewriting is a proxy that changes the request target; the handler cannot see that.
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

func onlyIf(condition func(*http.Request) bool, broken func(http.Handler) http.Handler) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		other := broken(next)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if condition(r) {
				other.ServeHTTP(w, r)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

func isDelete(r *http.Request) bool { return r.Method == http.MethodDelete }

// broken are mounts that widen requests or redirect them, with the classes of requests
// that must show it. The first class is one without which they would pass.
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
	{"redirects elsewhere", func(next http.Handler) http.Handler {
		return onlyIf(func(r *http.Request) bool { return strings.Contains(r.RequestURI, "..") }, func(http.Handler) http.Handler {
			return http.RedirectHandler("/login", http.StatusFound)
		})(next)
	}, []string{"dots"}},
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

func overrideMethod(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if method := r.Header.Get("X-HTTP-Method-Override"); method != "" {
			r.Method = method
		}
		next.ServeHTTP(w, r)
	})
}

// TestBroken: every broken mount fails, for the requests that it treats wrongly.
func TestBroken(t *testing.T) {
	for _, tt := range broken {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := pathtest.New(t, hooks)
			target := serve(t, tt.around(s), false)
			target.Received = s.Received
			report := check(t, target)
			var classes []string
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

// checkFailure: a failure names the request, what reached the application, and the remedy.
func checkFailure(t *testing.T, f mounttest.Failure) {
	t.Helper()
	redirects := f.Status >= 300 && f.Status < 400
	if redirects != (f.Outcome == mounttest.Redirected) || redirects != (f.Location != "") {
		t.Errorf("status %d, location %q: %v", f.Status, f.Location, f)
	}
	if redirects == strings.Contains(f.Received, "configure-webhook") || f.Advice == "" || !strings.Contains(f.Request, "HTTP/1.") {
		t.Errorf("incomplete: %+v", f)
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
			report := check(t, serve(t, onlyIf(isHTTP2, tt.around)(newHandler(t, store.NewMemory(), hooks)), true))
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
