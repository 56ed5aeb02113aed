package pathtest_test

import (
	"net/http"
	"net/http/httptest"
	"path"
	"testing"

	"example.com/go-webhookcfg/internal/pathtest"
	"example.com/go-webhookcfg/webhookcfg"
)

// counter counts errors in place of a test.
type counter struct {
	testing.TB
	errors int
}

func (c *counter) Errorf(string, ...any) { c.errors++ }

// middleware changes what reaches the handler.
type middleware func(w http.ResponseWriter, r *http.Request, next http.Handler)

func pass(w http.ResponseWriter, r *http.Request, next http.Handler) { next.ServeHTTP(w, r) }

func clean(w http.ResponseWriter, r *http.Request, next http.Handler) {
	r.URL.Path, r.URL.RawPath = path.Clean(r.URL.Path), ""
	r.RequestURI = r.URL.RequestURI()
	next.ServeHTTP(w, r)
}

func mergeSlashes(w http.ResponseWriter, r *http.Request, next http.Handler) {
	if r.RequestURI == "//hooks/api/v1/configure/configure-webhook" {
		r.RequestURI = r.RequestURI[1:]
		r.URL.Path = r.RequestURI
	}
	next.ServeHTTP(w, r)
}

func redirect(w http.ResponseWriter, r *http.Request, next http.Handler) {
	if r.URL.Path == "/hooks/" {
		http.Redirect(w, r, "/hooks", http.StatusMovedPermanently)
		return
	}
	next.ServeHTTP(w, r)
}

// other names another entity, where the target is malformed.
func other(w http.ResponseWriter, r *http.Request, next http.Handler) {
	if r.RequestURI == "/hooks/api/v1/configure/configure-webhook/x;y" {
		r.RequestURI = "/hooks/api/v1/configure/configure-webhook/x"
		r.URL.Path = r.RequestURI
	}
	next.ServeHTTP(w, r)
}

func refuse(w http.ResponseWriter, r *http.Request, next http.Handler) {
	if r.RequestURI == "/hooks/api/v1/configure/configure-webhook/..." {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	next.ServeHTTP(w, r)
}

func hangUp(w http.ResponseWriter, r *http.Request, next http.Handler) {
	if r.URL.Path == "/hooks/" {
		panic(http.ErrAbortHandler)
	}
	next.ServeHTTP(w, r)
}

// TestExpectEffects: a mount that changes effects fails, unless that is tolerated.
func TestExpectEffects(t *testing.T) {
	cleans := pathtest.Tolerance{Cleans: true}
	refuses := pathtest.Tolerance{Refuses: []string{"/hooks/api/v1/configure/configure-webhook/..."}}
	for _, tt := range []struct {
		name       string
		mount      middleware
		tolerance  pathtest.Tolerance
		wantErrors bool
	}{
		{"as it is", pass, pathtest.Tolerance{}, false},
		{"cleans", clean, cleans, true},
		{"merges slashes", mergeSlashes, cleans, true},
		{"merges slashes, tolerated", mergeSlashes, pathtest.Tolerance{Forgives: []string{"//hooks/api/v1/configure/configure-webhook"}}, false},
		{"redirects", redirect, cleans, true},
		{"another entity", other, pathtest.Tolerance{}, true},
		{"another entity, tolerated", other, cleans, false},
		{"refuses", refuse, cleans, true},
		{"refuses, tolerated", refuse, refuses, false},
		{"disconnects", hangUp, pathtest.Tolerance{}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := pathtest.New(t, webhookcfg.Options{BasePath: "/hooks"})
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { tt.mount(w, r, s) }))
			defer server.Close()
			c := &counter{TB: t}
			s.ExpectEffects(c, server.URL+"/hooks", tt.tolerance, pathtest.Scopes...)
			if (c.errors > 0) != tt.wantErrors {
				t.Errorf("%d errors, want some: %t", c.errors, tt.wantErrors)
			}
		})
	}
}
