package mounts

import (
	"net/http"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/go-chi/chi/v5"
	"github.com/julienschmidt/httprouter"
)

// TestStartUp shows which of the host's own routes a mount is compatible with: the
// routers panic when two routes conflict.
func TestStartUp(t *testing.T) {
	h := newHandler(t, newRecorder(), options())
	page := http.HandlerFunc(home)
	tests := []struct {
		name   string
		panics bool
		build  func()
	}{
		{"ServeMux, prefix next to GET /", true, func() {
			mux := http.NewServeMux()
			mux.Handle("/hooks/", h)
			mux.Handle("GET /", page)
		}},
		{"ServeMux, prefix next to GET /{$}", false, func() {
			mux := http.NewServeMux()
			mux.Handle("/hooks/", h)
			mux.Handle("GET /{$}", page)
		}},
		{"ServeMux, Register next to GET /", false, func() {
			mux := http.NewServeMux()
			h.Register(mux)
			mux.Handle("GET /", page)
			mux.Handle("GET /hooks/health", page)
		}},
		{"ServeMux, Register next to a wildcard that overlaps", true, func() {
			mux := http.NewServeMux()
			h.Register(mux)
			mux.Handle("DELETE /hooks/api/v1/{kind}/configure-webhook/e1", page)
		}},
		{"ServeMux, Before alone next to a wildcard that overlaps", false, func() {
			mux := http.NewServeMux()
			mux.Handle("DELETE /hooks/api/v1/{kind}/configure-webhook/e1", page)
			h.Before(mux)
		}},
		{"chi, mounted twice", true, func() {
			r := chi.NewRouter()
			r.Mount("/hooks", h)
			r.Mount("/hooks", h)
		}},
		{"chi, route below the prefix", false, func() {
			r := chi.NewRouter()
			r.Mount("/hooks", h)
			r.Get("/hooks/health", home)
		}},
		{"gin, route below the prefix", true, func() {
			r := gin.New()
			r.Any("/hooks/*path", gin.WrapH(h))
			r.GET("/hooks/health", gin.WrapH(page))
		}},
		{"httprouter, route below the prefix", true, func() {
			r := httprouter.New()
			r.Handler(http.MethodGet, "/hooks/*path", h)
			r.Handler(http.MethodGet, "/hooks/health", page)
		}},
		{"httprouter, wildcard next to the prefix", true, func() {
			r := httprouter.New()
			r.Handler(http.MethodGet, "/hooks/*path", h)
			r.Handler(http.MethodGet, "/:page", page)
		}},
	}
	for _, tt := range tests {
		if got := panics(tt.build); got != tt.panics {
			t.Errorf("%s: panics: %t, want %t", tt.name, got, tt.panics)
		}
	}
}

func panics(fn func()) (panicked bool) {
	defer func() { panicked = recover() != nil }()
	fn()
	return false
}
