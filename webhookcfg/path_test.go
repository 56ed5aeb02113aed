package webhookcfg_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"example.com/go-webhookcfg/internal/pathtest"
	"example.com/go-webhookcfg/webhookcfg"
)

// TestPaths: every mount serves the table of targets, in every mode.
func TestPaths(t *testing.T) {
	for _, scope := range pathtest.Scopes {
		service := pathtest.New(t, webhookcfg.Options{AllScope: scope})
		h := service.Handler()
		mux := http.NewServeMux()
		h.Register(mux)
		registered := serve(t, mux)
		before := serve(t, h.Before(mux))
		direct := serve(t, h)
		for _, row := range pathtest.Rows("", scope) {
			for _, mount := range []struct{ name, address, want string }{
				{"direct", direct, row.Direct},
				{"Before", before, row.Before},
				{"Register", registered, row.Registered},
			} {
				if got := service.Delete(t, mount.address, row.Target); got != mount.want {
					t.Errorf("AllScope %d, %s: DELETE %s: got %s, want %s", scope, mount.name, row.Target, got, mount.want)
				}
			}
		}
	}
}

// TestAllScopeOfSet: a set without an identifier reaches all entities, or is refused. A set
// with an identifier always works.
func TestAllScopeOfSet(t *testing.T) {
	for scope, want := range []string{"acme set all", "acme set all", "403"} {
		st := newRecorder()
		o := options()
		o.AllScope = webhookcfg.AllScope(scope)
		o.VariantAliases = []string{"/webhook/"}
		address := serve(t, newHandler(t, st, o))
		for _, path := range []string{configure, variant, "/webhook/"} {
			if got := outcome(st, raw(t, address, request("POST", path, acme, `{"webhook_url":"`+hookURL+`"}`))); got != want {
				t.Errorf("AllScope %d, all at %s: got %s, want %s", scope, path, got, want)
			}
		}
		if got := outcome(st, raw(t, address, request("POST", variant, acme, `{"moc_id":"x","webhook_url":"`+hookURL+`"}`))); got != "acme set entity x" {
			t.Errorf("AllScope %d, one entity: got %s", scope, got)
		}
	}
}

// TestOriginalTarget: a request reaches all entities only if the outermost proxy received a
// target that does. The proxy of the test passes that target in a field, and a rewritten
// path.
func TestOriginalTarget(t *testing.T) {
	const all, one = `{"webhook_url":"` + hookURL + `"}`, `{"moc_id":"x","webhook_url":"` + hookURL + `"}`
	for _, tt := range []struct {
		method, path, body string
		original           []string
		want, exact        string
	}{
		{"DELETE", configure, "", []string{configure}, "all", "all"},
		{"DELETE", configure, "", []string{"/public" + configure}, "all", "all"},
		{"DELETE", configure, "", []string{"https://hooks.example" + configure}, "all", "all"},
		{"DELETE", configure, "", []string{configure + "/"}, "all", "400"},
		{"DELETE", configure + "/", "", []string{configure}, "all", "400"},
		{"DELETE", configure + "/", "", []string{configure + "/"}, "all", "400"},
		{"DELETE", configure + "/", "", []string{configure + "//"}, "400", "400"},
		{"DELETE", configure + "/", "", []string{configure + "/e1/.."}, "400", "400"},
		{"DELETE", configure + "/", "", []string{configure + "/%2f"}, "400", "400"},
		{"DELETE", configure, "", []string{configure + "/e1/%2e%2e"}, "400", "400"},
		{"DELETE", configure, "", []string{configure + "?endpoint_id=e1"}, "400", "400"},
		{"DELETE", configure, "", []string{configure + "?"}, "400", "400"},
		{"DELETE", configure, "", []string{configure + "#/e1"}, "400", "400"},
		{"DELETE", configure, "", []string{"/x?" + configure}, "400", "400"},
		{"DELETE", configure, "", []string{"/x#" + configure}, "400", "400"},
		{"DELETE", configure, "", []string{configure + "/e1/../../../../.." + configure}, "400", "400"},
		{"DELETE", configure, "", []string{configure + "/e1/..%2f.." + configure}, "400", "400"},
		{"DELETE", configure, "", []string{`/x\..` + configure}, "400", "400"},
		{"DELETE", configure, "", []string{"/x;" + configure}, "400", "400"},
		{"DELETE", configure, "", []string{configure + "/e1," + configure}, "400", "400"},
		{"DELETE", configure, "", []string{"//x" + configure}, "400", "400"},
		{"DELETE", configure, "", []string{"http://h/x/.." + configure}, "400", "400"},
		{"DELETE", configure, "", []string{configure + "/e1/..?x=http://h" + configure}, "400", "400"},
		{"DELETE", configure, "", []string{configure + "/e1/..#http://h" + configure}, "400", "400"},
		{"DELETE", configure, "", []string{configure + "/e1/../http://h" + configure}, "400", "400"},
		{"DELETE", configure, "", []string{"x?http://h" + configure}, "400", "400"},
		{"DELETE", configure, "", []string{"x#http://h" + configure}, "400", "400"},
		{"DELETE", configure, "", []string{"http://h?" + configure}, "400", "400"},
		{"DELETE", configure, "", []string{"http://h#" + configure}, "400", "400"},
		{"DELETE", configure, "", []string{`http://h\x` + configure}, "400", "400"},
		{"DELETE", configure, "", []string{"http://h"}, "400", "400"},
		{"DELETE", configure, "", []string{variant}, "400", "400"},
		{"DELETE", configure, "", []string{"/public" + configure + "/e1" + configure}, "400", "400"},
		{"DELETE", configure, "", []string{"/public" + configure + "/e1/public" + configure}, "400", "400"},
		{"DELETE", configure, "", []string{"http://h" + variant + "/e1" + configure}, "400", "400"},
		{"DELETE", configure, "", []string{configure + configure}, "400", "400"},
		{"DELETE", configure, "", []string{"/webhook/e1" + configure}, "400", "400"},
		{"DELETE", configure, "", []string{"/webhooks" + configure}, "all", "all"},
		{"DELETE", configure, "", []string{""}, "400", "400"},
		{"DELETE", configure, "", nil, "400", "400"},
		{"DELETE", configure, "", []string{configure, configure}, "400", "400"},
		{"DELETE", configure + "/e1", "", nil, "entity e1", "entity e1"},
		{"DELETE", configure + "/e1", "", []string{configure + "/e1/"}, "entity e1", "entity e1"},
		{"POST", variant, all, []string{variant}, "acme set all", "acme set all"},
		{"POST", variant, all, []string{variant + "/"}, "400", "400"},
		{"POST", variant, all, []string{variant + "/e1/.."}, "400", "400"},
		{"POST", variant, all, nil, "400", "400"},
		{"POST", variant, one, nil, "acme set entity x", "acme set entity x"},
		{"POST", "/webhook/", all, []string{"/webhook/"}, "acme set all", "acme set all"},
		{"POST", "/webhook/", all, []string{"/webhook"}, "400", "400"},
		{"DELETE", "/webhook/", "", []string{"/webhook/"}, "all", "400"},
	} {
		for scope, want := range []string{tt.want, tt.exact} {
			st := newRecorder()
			o := options()
			o.AllScope = webhookcfg.AllScope(scope)
			o.BasePath = "/inside"
			o.VariantAliases = []string{"/webhook/"}
			o.OriginalTarget = webhookcfg.TargetFromHeader("x-original-uri")
			fields := []string{}
			for _, target := range tt.original {
				fields = append(fields, "X-Original-Uri: "+target)
			}
			address := serve(t, newHandler(t, st, o))
			if got := outcome(st, raw(t, address, request(tt.method, "/inside"+tt.path, acme, tt.body, fields...))); got != want {
				t.Errorf("AllScope %d: %s %s for the target %q: got %s, want %s", scope, tt.method, tt.path, tt.original, got, want)
			}
		}
	}
}

// TestRefusalOfAll: the text names the rule that the client broke, not what a proxy did.
func TestRefusalOfAll(t *testing.T) {
	o := options()
	o.AllScope = webhookcfg.AllScopeExact
	o.OriginalTarget = webhookcfg.TargetFromHeader("X-Original-URI")
	address := serve(t, newHandler(t, newRecorder(), o))
	for _, tt := range []struct{ path, original, want string }{
		{configure, configure + "/e1/..", "A request that reaches all entities must arrive with the path as the client sent it"},
		{configure + "?e1", configure + "?e1", "A request that reaches all entities takes no query string"},
		{configure + "/", configure + "/", "The identifier in the path is empty"},
	} {
		got := raw(t, address, request("DELETE", tt.path, acme, "", "X-Original-URI: "+tt.original))
		if got.Body != errorBody("invalid_request", tt.want) {
			t.Errorf("DELETE %s for the target %s: got %v, want %q", tt.path, tt.original, got, tt.want)
		}
	}
}

func outcome(st *recorder, a response) string {
	changes := st.take()
	switch {
	case a.Status == http.StatusOK && len(changes) == 1:
		return strings.TrimPrefix(changes[0], "acme unset ")
	case len(changes) > 0:
		return fmt.Sprintf("%d although %q", a.Status, changes)
	case a.Header.Get("Location") != "":
		return fmt.Sprintf("%d %s", a.Status, a.Header.Get("Location"))
	default:
		return fmt.Sprint(a.Status)
	}
}

// TestCleanedPath: a path that a mux or a middleware of the host cleaned does not mean
// all entities.
func TestCleanedPath(t *testing.T) {
	st := newRecorder()
	h := newHandler(t, st, options())
	address := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.URL.Path, r.URL.RawPath = configure+"/", "" // as a careless middleware would
		h.ServeHTTP(w, r)
	}))
	for _, tt := range []struct{ target, want string }{
		{configure + "/", "all"},
		{configure + "/x/..", "400"},
		{configure + "//", "400"},
		{configure + "/%2f", "400"},
		{configure + "/x", "400"},
		{"/public" + configure + "/", "all"},
		{"/a%20b" + configure + "/", "all"},
		{configure + "/x" + configure + "/", "400"},
		{"/public" + variant + "/x/public" + configure + "/", "400"},
		{strings.Replace(configure, "-", "%2d", 1) + "/x" + configure + "/", "400"},
	} {
		if got := outcome(st, raw(t, address, request("DELETE", tt.target, acme, ""))); got != tt.want {
			t.Errorf("DELETE %s, cleaned: got %s, want %s", tt.target, got, tt.want)
		}
	}
}

// TestCleanedPathOfSet: a set without an identifier in its body doesn't mean all either.
func TestCleanedPathOfSet(t *testing.T) {
	st := newRecorder()
	h := newHandler(t, st, options())
	address := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.URL.Path, r.URL.RawPath = configure, ""
		h.ServeHTTP(w, r)
	}))
	all, one := `{"webhook_url":"`+hookURL+`"}`, `{"endpoint_id":"x","webhook_url":"`+hookURL+`"}`
	for _, tt := range []struct{ target, body, want string }{
		{configure, all, "acme set all"},
		{configure + "/x/..", all, "400"},
		{configure + "//", all, "400"},
		{configure + "/", all, "400"},
		{configure + "//", one, "acme set entity x"},
	} {
		if got := outcome(st, raw(t, address, request("POST", tt.target, acme, tt.body))); got != tt.want {
			t.Errorf("POST %s, cleaned: got %s, want %s", tt.target, got, tt.want)
		}
	}
}

func http10(request string) string {
	return strings.Replace(request, "HTTP/1.1\r\n", "HTTP/1.0\r\n", 1)
}

// TestAllTakesNoBody: a DELETE of all with a body is refused, since the body may name an
// entity.
func TestAllTakesNoBody(t *testing.T) {
	st := newRecorder()
	address := serve(t, newHandler(t, st, options()))
	const chunked = "Transfer-Encoding: chunked"
	tests := []struct {
		name, request, want string
	}{
		{"length", request("DELETE", configure, acme, `{"endpoint_id":"x"}`), "400"},
		{"one space", request("DELETE", configure+"/", acme, " "), "400"},
		{"length 0", request("DELETE", configure, acme, "", "Content-Length: 0"), "all"},
		{"chunked", request("DELETE", configure, acme, "", chunked) + "2\r\n{}\r\n0\r\n\r\n", "400"},
		{"chunked, empty", request("DELETE", configure, acme, "", chunked) + "0\r\n\r\n", "all"},
		{"chunked, broken", request("DELETE", configure, acme, "", chunked) + "zz\r\n", "400"},
		{"length 00", request("DELETE", configure, acme, "", "Content-Length: 00"), "400"},
		{"chunked, expecting 100", request("DELETE", configure, acme, "", chunked, "Expect: 100-continue") + "2\r\n{}\r\n0\r\n\r\n", "400"},
		{"length, expecting 100", request("DELETE", configure, acme, "{}", "Expect: 100-continue"), "400"},
		{"trailer", request("DELETE", configure, acme, "", chunked, "Trailer: X-Trailer") + "0\r\nX-Trailer: 1\r\n\r\n", "all"},
		{"HTTP/1.0", http10(request("DELETE", configure, acme, "")), "all"},
		{"HTTP/1.0, length", http10(request("DELETE", configure, acme, "{}")), "400"},
		{"HTTP/1.0, length 0", http10(request("DELETE", configure, acme, "", "Content-Length: 0")), "all"},
		{"one entity", request("DELETE", configure+"/x", acme, `{}`), "entity x"},
	}
	for _, tt := range tests {
		if got := outcome(st, raw(t, address, tt.request)); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}

// TestAllTakesNoAnnouncedBody: some servers and adapters only tell us the length of a body.
// Even if it's one byte, a DELETE of all is refused.
func TestAllTakesNoAnnouncedBody(t *testing.T) {
	for length, want := range []string{"all", "400"} {
		st := newRecorder()
		r := httptest.NewRequest("DELETE", configure, http.NoBody)
		r.SetBasicAuth("acme", "s3cret")
		r.ContentLength = int64(length)
		w := httptest.NewRecorder()
		newHandler(t, st, options()).ServeHTTP(w, r)
		if got := outcome(st, response{w.Code, w.Header(), w.Body.String()}); got != want {
			t.Errorf("length %d: got %s, want %s", length, got, want)
		}
	}
}
