package portal_test

import (
	"strings"
	"testing"
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
	f := newFixture(t)
	f.portal.FrameAncestors = "https://app.example.com"
	if got := f.serve(t).get("").header.Get("Content-Security-Policy"); !strings.HasSuffix(got, "frame-ancestors https://app.example.com") {
		t.Errorf("the option: %s", got)
	}
}
