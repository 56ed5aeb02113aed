package webhookcfg_test

import (
	"net/http"
	"strings"
	"testing"

	"example.com/go-webhookcfg/webhookcfg"
)

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
