package mounts

import (
	"net/http"

	"example.com/go-webhookcfg/webhookcfg"
	"github.com/go-chi/chi/v5"
)

// Chi mounts the handler below a prefix. Mount does not strip it.
func Chi(h *webhookcfg.Handler) http.Handler {
	r := chi.NewRouter()
	r.Get("/", home)
	r.Mount("/hooks", h)
	return r
}
