package mounts

import (
	"net/http"

	"example.com/go-webhookcfg/webhookcfg"
)

// ServeMux stands before a mux, which would answer DELETE of an unclean path with
// a 307 to the clean one.
func ServeMux(h *webhookcfg.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /", home)
	return h.Before(mux)
}
