package frames_test

import (
	"net/http"
	"testing"

	"example.com/go-webhookcfg/internal/integration/frames"
	"example.com/go-webhookcfg/internal/pathtest"
	"example.com/go-webhookcfg/webhookcfg"
)

// TestMounts: frames reach all entities only if they mean them, with and without TLS.
func TestMounts(t *testing.T) {
	for name, mount := range map[string]func(h *webhookcfg.Handler) http.Handler{
		"direct": func(h *webhookcfg.Handler) http.Handler { return h },
		"Before": func(h *webhookcfg.Handler) http.Handler { return h.Before(http.NewServeMux()) },
		"Register": func(h *webhookcfg.Handler) http.Handler {
			mux := http.NewServeMux()
			h.Register(mux)
			return mux
		},
	} {
		for _, overTLS := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s := pathtest.New(t, webhookcfg.Options{BasePath: frames.Base})
				server := frames.Serve(t, s, mount(s.Handler()), frames.Start(overTLS))
				m := &frames.Mount{URL: server.URL, Redirects: name == "Register"}
				if overTLS {
					m.TLS = server.Client().Transport.(*http.Transport).TLSClientConfig
				}
				server.Check(t, m)
			})
		}
	}
}
