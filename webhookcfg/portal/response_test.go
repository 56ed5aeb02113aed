package portal_test

import (
	"net/http"
	"testing"

	"example.com/go-webhookcfg/internal/hooktest"
)

// TestHeader: no response is stored, runs a script, can be framed, shares its window with the site
// that opened it or leaks where it was.
func TestHeader(t *testing.T) {
	p := newFixture(t).serve(t)
	p.signIn()
	for _, path := range []string{"", "entity?id=e1", "all", "nothing", "style"} {
		header := p.get(path).header
		cached := "no-store"
		if path == "style" {
			cached = "private, max-age=300"
		}
		want := map[string]string{
			"Cache-Control": cached, "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin", "Referrer-Policy": "same-origin", "X-Content-Type-Options": "nosniff",
			"Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
		}
		for field, value := range want {
			if got := header.Get(field); got != value {
				t.Errorf("%s: %s: %s", path, field, got)
			}
		}
		if header.Get("WWW-Authenticate") != "" {
			t.Errorf("%s opens a prompt", path)
		}
	}
}

// TestReplacedBody: a middleware can replace the body of an error.
func TestReplacedBody(t *testing.T) {
	f := newFixture(t)
	f.around = func(next http.Handler) http.Handler { return hooktest.ReplaceErrors(next, "sorry") }
	p := f.serve(t)
	p.signIn()
	for _, path := range []string{"nothing", "entity?id=", "entity?id=%20"} {
		if r := p.get(path); r.status < http.StatusBadRequest || r.text != "sorry" {
			t.Errorf("%s: got %d %q", path, r.status, r.text)
		}
	}
}
