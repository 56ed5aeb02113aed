package mounts

import (
	"net/http"

	"example.com/go-webhookcfg/webhookcfg"
)

// ServeMux serves the handler before a mux, which would redirect a DELETE of an
// unclean path to the clean one with 307.
func ServeMux(h *webhookcfg.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /", home)
	return h.Before(mux)
}
