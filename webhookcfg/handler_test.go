package webhookcfg_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
	"github.com/google/go-cmp/cmp"
)

// TestMounts: the same requests get the same responses wherever the handler is mounted,
// and the routes of the host are served by the host.
func TestMounts(t *testing.T) {
	home := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "home") })
	based := func(base string) *webhookcfg.Options {
		o := options()
		o.BasePath = base
		return o
	}
	mounts := []struct {
		name, prefix string
		options      *webhookcfg.Options
		mount        func(h *webhookcfg.Handler) http.Handler
		ownsAll      bool // the handler responds 404 for every other path
	}{
		{"direct", "", options(), func(h *webhookcfg.Handler) http.Handler { return h }, true},
		{"StripPrefix", "/a/b", options(), func(h *webhookcfg.Handler) http.Handler {
			mux := http.NewServeMux()
			mux.Handle("/a/b/", http.StripPrefix("/a/b", h))
			mux.Handle("GET /{$}", home)
			return mux
		}, false},
		{"base path", "/a/b", based("/a/b/"), func(h *webhookcfg.Handler) http.Handler {
			mux := http.NewServeMux()
			mux.Handle("/a/b/", h)
			mux.Handle("GET /{$}", home)
			return mux
		}, false},
		{"Register", "/hooks", based("/hooks"), func(h *webhookcfg.Handler) http.Handler {
			mux := http.NewServeMux()
			h.Register(mux)
			mux.Handle("GET /", home)
			mux.Handle("POST /hooks/{own}", home)
			return mux
		}, false},
		{"Before", "", options(), func(h *webhookcfg.Handler) http.Handler {
			mux := http.NewServeMux()
			mux.Handle("/", home)
			return h.Before(mux)
		}, false},
		{"Before and Register", "/x", based("/x"), func(h *webhookcfg.Handler) http.Handler {
			mux := http.NewServeMux()
			h.Register(mux)
			mux.Handle("GET /", home)
			return h.Before(mux)
		}, false},
	}
	for _, tt := range mounts {
		t.Run(tt.name, func(t *testing.T) {
			st := newRecorder()
			address := serve(t, tt.mount(newHandler(t, st, tt.options)))
			at := func(method, path, body string) response {
				return raw(t, address, request(method, tt.prefix+path, acme, body))
			}
			body := `{"webhook_url":"` + hookURL + `"}`
			for _, ok := range []response{
				at("POST", configure, body), at("POST", variant, body), at("DELETE", configure+"/e1", ""), at("DELETE", variant+"/", ""), at("GET", configure, ""),
			} {
				if ok.Status != http.StatusOK {
					t.Errorf("got %v", ok)
				}
			}
			want := []string{"acme set all", "acme set all", "acme unset entity e1", "acme unset all"}
			if diff := cmp.Diff(want, st.take()); diff != "" {
				t.Errorf("changes: -want +got:\n%s", diff)
			}
			if a := at("PATCH", configure, body); a.Status != 405 || errorCode(a.Body) != "method_not_allowed" || a.Header.Get("Allow") != "DELETE, GET, POST" {
				t.Errorf("PATCH: got %v", a)
			}
			if a := at("DELETE", configure+"/x/y", ""); a.Status != 404 || errorCode(a.Body) != "not_found" {
				t.Errorf("DELETE of two segments: got %v", a)
			}
			if a := raw(t, address, request("GET", "/", "", "")); tt.ownsAll != (a.Body != "home") {
				t.Errorf("GET /: got %v", a)
			}
		})
	}
}

func TestAliases(t *testing.T) {
	o := options()
	o.BasePath, o.VariantAliases = "/h", []string{"/webhook/", "/short"}
	st := newRecorder()
	h := newHandler(t, st, o)
	mux := http.NewServeMux()
	h.Register(mux)
	body := `{"moc_id":"m1","webhook_url":"` + hookURL + `"}`
	tests := []struct{ method, target, body, want string }{
		{"POST", "/h/webhook/", body, "acme set entity m1"},
		{"POST", "/h/webhook", body, "405"},
		{"DELETE", "/h/webhook/m1", "", "acme unset entity m1"},
		{"DELETE", "/h/webhook/", "", "acme unset all"},
		{"DELETE", "/h/webhook", "", "acme unset all"},
		{"DELETE", "/h/webhook/%2f", "", "400"},
		{"POST", "/h/short", body, "acme set entity m1"},
		{"POST", "/h/short/", body, "405"},
		{"POST", "/h/short", `{"endpoint_id":"m1","webhook_url":"` + hookURL + `"}`, "400"},
		{"DELETE", "/h/short/m1", "", "acme unset entity m1"},
		{"POST", "/short", body, "404"},
		{"POST", "/h" + variant, body, "acme set entity m1"},
	}
	for _, mount := range []http.Handler{h, mux} {
		address := serve(t, mount)
		for _, tt := range tests {
			a := raw(t, address, request(tt.method, tt.target, acme, tt.body))
			got := fmt.Sprint(a.Status)
			if changes := st.take(); a.Status == http.StatusOK {
				got = strings.Join(changes, ", ")
			}
			if got != tt.want {
				t.Errorf("%T: %s %s: got %s, want %s", mount, tt.method, tt.target, got, tt.want)
			}
		}
	}
}

func TestRoutes(t *testing.T) {
	o := options()
	o.BasePath, o.VariantAliases = "/h", []string{"/webhook/"}
	h := newHandler(t, newRecorder(), o)
	c, v, w := "/h"+configure, "/h"+variant, "/h/webhook"
	want := []webhookcfg.Route{
		{Method: "POST", Path: c, Operation: "set"},
		{Method: "DELETE", Path: c, Operation: "unset"},
		{Method: "DELETE", Path: c + "/{$}", Operation: "unset"},
		{Method: "DELETE", Path: c + "/{endpoint_id}", Operation: "unset"},
		{Method: "GET", Path: c + "/{endpoint_id}", Operation: "read"},
		{Method: "GET", Path: c, Operation: "list"},
		{Method: "POST", Path: v, Operation: "set"},
		{Method: "DELETE", Path: v, Operation: "unset"},
		{Method: "DELETE", Path: v + "/{$}", Operation: "unset"},
		{Method: "DELETE", Path: v + "/{moc_id}", Operation: "unset"},
		{Method: "GET", Path: v + "/{moc_id}", Operation: "read"},
		{Method: "GET", Path: v, Operation: "list"},
		{Method: "POST", Path: w + "/{$}", Operation: "set"},
		{Method: "DELETE", Path: w, Operation: "unset"},
		{Method: "DELETE", Path: w + "/{$}", Operation: "unset"},
		{Method: "DELETE", Path: w + "/{moc_id}", Operation: "unset"},
		{Method: "GET", Path: w + "/{moc_id}", Operation: "read"},
		{Method: "GET", Path: w, Operation: "list"},
	}
	if diff := cmp.Diff(want, h.Routes()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestPattern: middleware around the handler can name the route, as after a mux.
func TestPattern(t *testing.T) {
	h := newHandler(t, newRecorder(), options())
	mux := http.NewServeMux()
	h.Register(mux)
	for _, mount := range []http.Handler{h, mux, h.Before(mux)} {
		var pattern string
		address := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mount.ServeHTTP(w, r)
			pattern = r.Pattern
		}))
		for target, want := range map[string]string{
			configure + "/e1": "DELETE " + configure + "/{endpoint_id}",
			variant + "/e1":   "DELETE " + variant + "/{moc_id}",
			configure + "/":   "DELETE " + configure + "/{$}",
			configure:         "DELETE " + configure,
		} {
			raw(t, address, request("DELETE", target, acme, ""))
			if pattern != want {
				t.Errorf("%T: DELETE %s: pattern %q, want %q", mount, target, pattern, want)
			}
		}
	}
}

// TestPatternAgrees: a mux routes the requests of each route by its pattern, and they reach
// the operation of the same route.
func TestPatternAgrees(t *testing.T) {
	h := newHandler(t, newRecorder(), options())
	for _, route := range h.Routes() {
		target := strings.NewReplacer("{$}", "", "{endpoint_id}", "e1", "{moc_id}", "e1").Replace(route.Path)
		var event webhookcfg.Event
		o := options()
		o.OnEvent = eventInto(&event)
		mux := http.NewServeMux()
		newHandler(t, newRecorder(), o).Register(mux)
		if _, got := mux.Handler(httptest.NewRequest(route.Method, target, nil)); got != route.Method+" "+route.Path {
			t.Errorf("%v: the mux routes it by the pattern %q", route, got)
		}
		body := ""
		if route.Operation == "set" {
			body = `{"webhook_url":"` + hookURL + `"}`
		}
		a := raw(t, serve(t, mux), request(route.Method, target, acme, body))
		if a.Status != http.StatusOK || event.Operation != route.Operation {
			t.Errorf("%v: got %v and the event %v", route, a, event)
		}
	}
}

func TestNewHandlerRefuses(t *testing.T) {
	good, v := newRecorder(), verifier(verify)
	tests := []struct {
		name     string
		store    webhookcfg.Store
		verifier webhookcfg.CredentialVerifier
		change   func(o *webhookcfg.Options)
		want     string
	}{
		{"nil store", nil, v, nil, "nil Store"},
		{"nil verifier", good, nil, nil, "nil CredentialVerifier"},
		{"relative base path", good, v, func(o *webhookcfg.Options) { o.BasePath = "hooks" }, "BasePath"},
		{"unclean base path", good, v, func(o *webhookcfg.Options) { o.BasePath = "/a//b" }, "BasePath"},
		{"dots in base path", good, v, func(o *webhookcfg.Options) { o.BasePath = "/a/../b" }, "BasePath"},
		{"wildcard in base path", good, v, func(o *webhookcfg.Options) { o.BasePath = "/{tenant}" }, "BasePath"},
		{"escape in base path", good, v, func(o *webhookcfg.Options) { o.BasePath = "/a%2fb" }, "BasePath"},
		{"letter beyond ASCII in base path", good, v, func(o *webhookcfg.Options) { o.BasePath = "/\u0161" }, "BasePath"},
		{"empty alias", good, v, func(o *webhookcfg.Options) { o.VariantAliases = []string{""} }, "VariantAlias"},
		{"root alias", good, v, func(o *webhookcfg.Options) { o.VariantAliases = []string{"/"} }, "VariantAlias"},
		{"alias below a path", good, v, func(o *webhookcfg.Options) { o.VariantAliases = []string{variant + "/x"} }, "overlaps"},
		{"alias above a path", good, v, func(o *webhookcfg.Options) { o.VariantAliases = []string{"/api"} }, "overlaps"},
		{"alias twice", good, v, func(o *webhookcfg.Options) { o.VariantAliases = []string{"/w", "/w/"} }, "overlaps"},
		{"quote in realm", good, v, func(o *webhookcfg.Options) { o.Realm = `a"b` }, "Realm"},
		{"line break in realm", good, v, func(o *webhookcfg.Options) { o.Realm = "a\r\nb" }, "Realm"},
		{"probe longer than the request", good, v, func(o *webhookcfg.Options) { o.Timeout, o.ProbeTimeout = 1, 1 }, "ProbeTimeout"},
		{"negative timeout", good, v, func(o *webhookcfg.Options) { o.Timeout = -1 }, "negative"},
		{"negative limit", good, v, func(o *webhookcfg.Options) { o.BodyLimit = -1 }, "negative"},
		{"unknown scope", good, v, func(o *webhookcfg.Options) { o.AllScope = 3 }, "AllScope 3"},
		{"invalid policy next to a prober", good, v, func(o *webhookcfg.Options) {
			o.Policy, o.Prober = &egress.Policy{Ports: []uint16{0}}, prober(nil)
		}, "port 0"},
		{"unknown mode", good, v, func(o *webhookcfg.Options) { o.ProbeMode = 9 }, "ProbeMode 9"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := options()
			if tt.change != nil {
				tt.change(o)
			}
			h, err := webhookcfg.NewHandler(tt.store, tt.verifier, o)
			if err == nil || h != nil || !strings.HasPrefix(err.Error(), "webhookcfg: ") || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v and the error %v, want one about %s", h, err, tt.want)
			}
		})
	}
	if _, err := webhookcfg.NewHandler(good, v, nil); err != nil {
		t.Errorf("nil options: %v", err)
	}
}
