package webhookcfg_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"example.com/go-webhookcfg/internal/pathtest"
	"example.com/go-webhookcfg/webhookcfg"
	"github.com/google/go-cmp/cmp"
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
