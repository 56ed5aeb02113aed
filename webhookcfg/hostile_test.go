package webhookcfg_test

import (
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
	"github.com/google/go-cmp/cmp"
)

// TestHostileRequests sends requests that break a rule over each version of HTTP. The
// response is the one documented for the rule, and the state stays as it was.
func TestHostileRequests(t *testing.T) {
	const (
		url  = `"webhook_url":"https://evil.example.com/"`
		set  = "{" + url + "}"
		one  = `{"endpoint_id":"e1",` + url + "}"
		bad  = "400 invalid_request"
		away = "404 not_found"
	)
	type hostile struct {
		name, method, target, body string
		fields                     []string
		want                       string
	}
	tests := []hostile{
		{"byte order mark", "POST", configure, "\xef\xbb\xbf" + set, nil, bad},
		{"UTF-16", "POST", configure, "\xff\xfe{\x00}\x00", nil, bad},
		{"UTF-7", "POST", configure, "+AHs-" + url + "+AH0-", nil, bad},
		{"NUL after", "POST", configure, set + "\x00", nil, bad},
		{"NUL in key", "POST", configure, "{\"webhook_url\x00\":\"x\"}", nil, bad},
		{"escaped NUL in key", "POST", configure, `{"endpoint_id\u0000":"e1",` + url + "}", nil, bad},
		{"second object", "POST", configure, one + set, nil, bad},
		{"lines", "POST", configure, one + "\n" + set, nil, bad},
		{"array", "POST", configure, "[" + set + "]", nil, bad},
		{"string", "POST", configure, `"` + hookURL + `"`, nil, bad},
		{"comment", "POST", configure, "{/**/" + url + "}", nil, bad},
		{"trailing comma", "POST", configure, "{" + url + ",}", nil, bad},
		{"single quotes", "POST", configure, strings.ReplaceAll(set, `"`, "'"), nil, bad},
		{"bare key", "POST", configure, strings.Replace(set, `"webhook_url"`, "webhook_url", 1), nil, bad},
		{"form feed", "POST", configure, "\f" + set, nil, bad},
		{"no-break space", "POST", configure, "\u00a0" + set, nil, bad},
		{"depth", "POST", configure, strings.Repeat("[", 16000), nil, bad},
		{"depth in a value", "POST", configure, `{"webhook_url":` + strings.Repeat(`{"a":`, 3000), nil, bad},
		{"many keys", "POST", configure, "{" + strings.Repeat(`"a":"b",`, 2000) + url + "}", nil, bad},
		{"repeated, escaped", "POST", configure, `{"endpoint_id":"e1","endpoint\u005fid":"e2",` + url + "}", nil, bad},
		{"repeated null", "POST", configure, `{"endpoint_id":"e1","endpoint_id":null,` + url + "}", nil, bad},
		{"repeated URL", "POST", configure, "{" + url + "," + url + "}", nil, bad},
		{"homoglyph", "POST", configure, "{\"\u0435ndpoint_id\":\"e1\"," + url + "}", nil, bad},
		{"combining mark", "POST", configure, "{\"endpoint_id\u0301\":\"e1\"," + url + "}", nil, bad},
		{"folding letter", "POST", configure, "{\"webhoo\u212a_url\":\"https://evil.example.com/\"}", nil, bad},
		{"prototype", "POST", configure, `{"__proto__":{"endpoint_id":"e1"},` + url + "}", nil, bad},
		{"id as array", "POST", configure, `{"endpoint_id":["e1"],` + url + "}", nil, bad},
		{"id as number", "POST", configure, `{"endpoint_id":1,` + url + "}", nil, bad},
		{"id as boolean", "POST", configure, `{"endpoint_id":false,` + url + "}", nil, bad},
		{"id with overlong slash", "POST", configure, "{\"endpoint_id\":\"a\xc0\xafb\"," + url + "}", nil, bad},
		{"id with a surrogate", "POST", configure, `{"endpoint_id":"\ud800",` + url + "}", nil, bad},
		{"swapped surrogates", "POST", configure, `{"endpoint_id":"\udc00\ud800",` + url + "}", nil, bad},
		{"id with an escaped slash", "POST", configure, `{"endpoint_id":"a%2fb",` + url + "}", nil, bad},
		{"too large", "POST", configure, set + strings.Repeat(" ", 16<<10), nil, "413 request_too_large"},
		{"other method in the body", "POST", configure, "_method=DELETE", nil, bad},

		{"list of types", "POST", configure, set, []string{"Content-Type", "application/json, text/plain"}, "415 unsupported_media_type"},
		{"charset twice", "POST", configure, set, []string{"Content-Type", "application/json; charset=utf-8; charset=utf-16"}, "415 unsupported_media_type"},
		{"longer type", "POST", configure, set, []string{"Content-Type", "application/jsonx"}, "415 unsupported_media_type"},
		{"type with a suffix", "POST", configure, set, []string{"Content-Type", "application/problem+json"}, "415 unsupported_media_type"},
		{"codings", "POST", configure, set, []string{"Content-Encoding", "identity, gzip"}, "415 unsupported_media_type"},
		{"second coding", "POST", configure, set, []string{"Content-Encoding", "identity", "Content-Encoding", "br"}, "415 unsupported_media_type"},

		{"second credentials", "DELETE", configure, "", []string{"Authorization", "Basic " + base64.StdEncoding.EncodeToString([]byte(acme))}, "401 invalid_client"},
		{"empty credentials too", "DELETE", configure, "", []string{"Authorization", ""}, "401 invalid_client"},

		{"body", "DELETE", configure, "{}", nil, bad},
		{"body of a line", "DELETE", configure + "/", "\n", nil, bad},
		{"query", "DELETE", configure + "?e1", "", nil, bad},
		{"query alone", "DELETE", configure + "/?", "", nil, bad},
		{"two question marks", "DELETE", configure + "??", "", nil, bad},
		{"query of a set", "POST", configure + "?", set, nil, bad},
		{"dots", "DELETE", configure + "/..", "", nil, bad},
		{"escaped dots", "DELETE", configure + "/%2E%2e", "", nil, bad},
		{"escaped slash", "DELETE", configure + "/%2f", "", nil, bad},
		{"escaped backslash", "DELETE", configure + "/e1%5c..", "", nil, bad},
		{"backslash", "DELETE", configure + `/e1\..`, "", nil, bad},
		{"parameters", "DELETE", configure + "/;e1", "", nil, bad},
		{"fragment", "DELETE", configure + "/#e1", "", nil, bad},
		{"overlong dots", "DELETE", configure + "/%c0%ae%c0%ae", "", nil, bad},
		{"fullwidth dots", "DELETE", configure + "/%ef%bc%8e%ef%bc%8e", "", nil, bad},
		{"twice escaped", "DELETE", configure + "/%252e%252e", "", nil, bad},
		{"zero width space", "DELETE", configure + "/%e2%80%8b", "", nil, bad},
		{"two slashes", "DELETE", configure + "//", "", nil, away},
		{"dots and a slash", "DELETE", configure + "/e1/../", "", nil, away},
		{"fragment for a path", "DELETE", configure + "#e1", "", nil, away},
		{"parameters for a path", "DELETE", configure + ";e1", "", nil, away},
		{"escaped letter", "DELETE", "/api/v1/configure/configure-webhoo%6b", "", nil, away},
		{"set at an entity", "POST", configure + "/e1", set, nil, "405 method_not_allowed"},
		{"patch", "PATCH", configure, set, nil, "405 method_not_allowed"},
		{"method in a field", "GET", configure + "/", "", []string{"X-HTTP-Method-Override", "DELETE"}, "405 method_not_allowed"},
		{"path in a field", "GET", "/", "", []string{"X-Original-URL", configure, "X-Rewrite-URL", configure}, away},
	}

	st := newRecorder()
	address := serveHTTP2(t, newHandler(t, st, options()))
	steps(t, address, "set "+hookURL, "set e1 "+hookURL, "unset e2")
	st.take()
	before := steps(t, address, "list")
	for _, tt := range tests {
		var fields, lower []string
		for i := 0; i < len(tt.fields); i += 2 {
			fields = append(fields, tt.fields[i]+": "+tt.fields[i+1])
			lower = append(lower, strings.ToLower(tt.fields[i]), tt.fields[i+1])
		}
		http11 := request(tt.method, tt.target, acme, tt.body, fields...)
		responses := map[string]string{}
		for version, text := range map[string]string{
			"HTTP/1.0": http10(http11),
			"HTTP/1.1": http11,
			"chunked": request(tt.method, tt.target, acme, "", append(fields, "Transfer-Encoding: chunked")...) +
				chunks(tt.body),
		} {
			a := raw(t, address, text)
			responses[version] = fmt.Sprint(a.Status, " ", errorCode(a.Body))
		}
		responses["HTTP/2"] = statusAndCode(rawHTTP2(t, address, nil, http2Request(tt.method, tt.target, tt.body, lower)...))
		for version, got := range responses {
			if got != tt.want {
				t.Errorf("%s, %s: got %s, want %s", tt.name, version, got, tt.want)
			}
		}
		if changes := st.take(); changes != nil {
			t.Errorf("%s: the store saw %q", tt.name, changes)
		}
	}
	if diff := cmp.Diff(before, steps(t, address, "list")); diff != "" {
		t.Errorf("the state changed: -want +got:\n%s", diff)
	}
}

// TestAmbiguousRequests sends requests that two servers may read differently. Those that
// net/http accepts have one meaning.
func TestAmbiguousRequests(t *testing.T) {
	const one = `{"endpoint_id":"e1","webhook_url":"` + hookURL + `"}`
	signIn := "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(acme))
	unset := func(fields string) string { return "DELETE " + configure + " HTTP/1.1\r\n" + fields + "\r\n" }
	set := func(fields, body string) string {
		return "POST " + configure + " HTTP/1.1\r\nHost: test\r\n" + signIn + "\r\nContent-Type: application/json\r\n" + fields + "\r\n" + body
	}
	chunked := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(one), one)
	tests := []struct{ name, request, want string }{
		{"two lengths", set("Content-Length: 2\r\nContent-Length: 60\r\n", one), "400"},
		{"list of lengths", set(fmt.Sprintf("Content-Length: %d, %d\r\n", len(one), len(one)), one), "400"},
		{"equal lengths", set(strings.Repeat(fmt.Sprintf("Content-Length: %d\r\n", len(one)), 2), one), "acme set entity e1"},
		{"signed length", set(fmt.Sprintf("Content-Length: +%d\r\n", len(one)), one), "400"},
		{"short length", set("Content-Length: 20\r\n", one), "400"},
		{"length and chunks", set("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", chunked), "acme set entity e1"},
		{"two codings", set("Transfer-Encoding: chunked, identity\r\n", chunked), "501"},
		{"unknown coding", set("Transfer-Encoding: xchunked\r\n", chunked), "501"},
		{"coding twice", set("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", chunked), "501"},
		{"space before a colon", set("Content-Length : 60\r\n", one), "400"},
		{"folded field", set(fmt.Sprintf("Content-Length:\r\n %d\r\n", len(one)), one), "acme set entity e1"},
		{"chunk of no size", set("Transfer-Encoding: chunked\r\n", "\r\n"+one+"\r\n0\r\n\r\n"), "400"},
		{"chunk of a negative size", set("Transfer-Encoding: chunked\r\n", "-1\r\n"+one+"\r\n0\r\n\r\n"), "400"},
		{"chunk of a huge size", set("Transfer-Encoding: chunked\r\n", "fffffffffffffffff\r\n"+one), "400"},
		{"chunk without an end", set("Transfer-Encoding: chunked\r\n", fmt.Sprintf("%x\r\n%s0\r\n\r\n", len(one), one)), "400"},
		{"credentials in a trailer", "DELETE " + configure + " HTTP/1.1\r\nHost: test\r\nTrailer: Authorization\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n" + signIn + "\r\n\r\n", "401"},
		{"unannounced credentials in a trailer", unset("Host: test\r\nTransfer-Encoding: chunked\r\n") + "0\r\n" + signIn + "\r\n\r\n", "401"},
		{"no host", unset(signIn + "\r\n"), "400"},
		{"two hosts", unset("Host: a\r\nHost: b\r\n" + signIn + "\r\n"), "400"},
		{"line feed in a field", unset("Host: test\r\nX: a\n" + signIn + "\r\n"), "acme unset all"},
		{"NUL in a field", unset("Host: test\r\nX: \x00\r\n" + signIn + "\r\n"), "400"},
		{"folded credentials", unset("Host: test\r\n" + strings.Replace(signIn, " Basic", "\r\n Basic", 1) + "\r\n"), "acme unset all"},
		{"spaces in the line", "DELETE  " + configure + " HTTP/1.1\r\nHost: test\r\n" + signIn + "\r\n\r\n", "400"},
		{"no version", "DELETE " + configure + "\r\n\r\n", "400"},
		{"path in another form", "DELETE http:" + configure + " HTTP/1.1\r\nHost: test\r\n" + signIn + "\r\n\r\n", "400"},
		{"opaque target", "DELETE mailto:" + configure[1:] + " HTTP/1.1\r\nHost: test\r\n" + signIn + "\r\n\r\n", "404"},
		{"path for a host", "DELETE /" + configure + " HTTP/1.1\r\nHost: test\r\n" + signIn + "\r\n\r\n", "404"},
		{"path in a query", "DELETE /?" + configure + " HTTP/1.1\r\nHost: test\r\n" + signIn + "\r\n\r\n", "404"},
		{"tunnel", "CONNECT " + configure + " HTTP/1.1\r\nHost: test\r\n" + signIn + "\r\n\r\n", "405"},
	}
	for _, tt := range tests {
		st := newRecorder()
		a := raw(t, serve(t, newHandler(t, st, options())), tt.request)
		got := strings.Join(st.take(), ", ")
		if got == "" {
			got = fmt.Sprint(a.Status)
		}
		if got != tt.want {
			t.Errorf("%s: got %s (%v), want %s", tt.name, got, a, tt.want)
		}
	}
	lengths := []struct{ name, length, first, second, want string }{
		{"DATA beyond the length", "5", one, "", ""},
		{"DATA beyond the length, later", fmt.Sprint(len(one)), one, " ", ""},
		{"less DATA than the length", "100", one, "", ""},
		{"equal", fmt.Sprint(len(one)), one[:9], one[9:], "acme set entity e1"},
	}
	st := newRecorder()
	address := serveHTTP2(t, newHandler(t, st, options()))
	for _, tt := range lengths {
		body := rawHTTP2(t, address, nil, requestHeaders(0, "POST", configure, "content-length", tt.length), frame{frameData, 0, tt.first}, frame{frameData, flagEndStream, tt.second})
		if got := strings.Join(st.take(), ", "); got != tt.want {
			t.Errorf("%s: the store saw %q, and the response is %s", tt.name, got, body)
		}
	}
}

// TestRequestInABody: if the handler doesn't read a body to its end, the rest never counts as
// the next request on the connection. Either the next request does, or the connection is
// closed.
func TestRequestInABody(t *testing.T) {
	inner := strings.Replace(request("DELETE", configure, acme, ""), "Connection: close\r\n", "", 1)
	const next, unset1 = "acme unset entity e2", "acme unset entity e1, "
	tests := []struct{ name, request, want string }{
		{"unset of one", request("DELETE", configure+"/e1", acme, inner), unset1 + next},
		{"unset of all", request("DELETE", configure, acme, inner), next},
		{"read", request("GET", configure+"/e1", acme, inner), next},
		{"wrong secret", request("POST", configure, "acme:x", inner), next},
		{"media type", request("POST", configure, acme, inner, "Content-Type: text/plain"), next},
		{"no object", request("POST", configure, acme, inner), next},
		{"not found", request("POST", "/nowhere", acme, inner), next},
		{"not allowed", request("PUT", configure, acme, inner), next},
		{"too large", request("POST", configure, acme, strings.Repeat(" ", 17_000)+inner), ""},
		{"too large, in a chunk", request("POST", configure, acme, "", "Transfer-Encoding: chunked") + chunks(strings.Repeat(" ", 17_000)+inner), ""},
		{"broken chunk", request("POST", configure, acme, "", "Transfer-Encoding: chunked") + "zz\r\n" + inner, ""},
		{"expected", request("POST", configure, "acme:x", inner, "Expect: 100-continue"), ""},
	}
	for _, tt := range tests {
		st := newRecorder()
		conn, err := net.Dial("tcp", serve(t, newHandler(t, st, options())))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(time.Minute))
		text := strings.Replace(tt.request, "Connection: close\r\n", "", 1) + request("DELETE", configure+"/e2", acme, "")
		if _, err := io.WriteString(conn, text); err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, conn)
		if got := strings.Join(st.take(), ", "); got != tt.want {
			t.Errorf("%s: the store saw %q, want %q", tt.name, got, tt.want)
		}
	}
}

// chunks is a body in chunks, with an extension and a trailer.
func chunks(body string) string {
	var b strings.Builder
	for _, chunk := range []string{body[:min(1, len(body))], body[min(1, len(body)):]} {
		if chunk != "" {
			fmt.Fprintf(&b, "%x;extension=1\r\n%s\r\n", len(chunk), chunk)
		}
	}
	return b.String() + "0\r\nX-Trailer: 1\r\n\r\n"
}

// http2Request returns the frames of a request with a body, if it has one, in frames of
// at most 10,000 bytes.
func http2Request(method, target, body string, fields []string) []frame {
	if body == "" {
		return []frame{requestHeaders(flagEndStream, method, target, fields...)}
	}
	frames := []frame{requestHeaders(0, method, target, fields...)}
	for ; len(body) > 10_000; body = body[10_000:] {
		frames = append(frames, frame{frameData, 0, body[:10_000]})
	}
	return append(frames, frame{frameData, flagEndStream, body})
}

// statusAndCode returns the status and code of the body of an error.
func statusAndCode(body string) string {
	code := errorCode(body)
	return fmt.Sprint(webhookcfg.ErrorTable()[code], " ", code)
}
