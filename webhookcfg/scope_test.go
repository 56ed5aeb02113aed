package webhookcfg_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"example.com/go-webhookcfg/webhookcfg"
)

func TestScope(t *testing.T) {
	tests := []struct {
		scope  webhookcfg.Scope
		all    bool
		entity string
		text   string
	}{
		{webhookcfg.All(), true, "", "all"},
		{webhookcfg.Entity("e1"), false, "e1", "entity e1"},
		{webhookcfg.Entity("all"), false, "all", "entity all"},
		{webhookcfg.Entity(""), false, "", "invalid"},
		{webhookcfg.Scope{}, false, "", "invalid"},
	}
	for _, tt := range tests {
		if tt.scope.IsAll() != tt.all || tt.scope.Entity() != tt.entity || tt.scope.String() != tt.text {
			t.Errorf("%#v: got %v, %q, %q", tt.scope, tt.scope.IsAll(), tt.scope.Entity(), tt.scope)
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

// TestRefusalOfAll: the text names the rule that the client broke, not what a proxy did.
func TestRefusalOfAll(t *testing.T) {
	o := options()
	o.AllScope = webhookcfg.AllScopeExact
	o.OriginalTarget = webhookcfg.TargetFromHeader("X-Original-URI")
	address := serve(t, newHandler(t, newRecorder(), o))
	for _, tt := range []struct{ path, original, want string }{
		{configure, configure + "/e1/..", "A request that reaches all entities must arrive with the path as the client sent it"},
		{configure + "?e1", configure + "?e1", "A request that reaches all entities takes no query string; the id of one entity belongs at the end of the path of a DELETE, and in the body of a POST"},
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

func http10(request string) string {
	return strings.Replace(request, "HTTP/1.1\r\n", "HTTP/1.0\r\n", 1)
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
