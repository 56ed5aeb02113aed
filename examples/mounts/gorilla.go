package mounts

import (
	"net/http"

	"example.com/go-webhookcfg/webhookcfg"
	"github.com/gorilla/mux"
)

// Gorilla stands before a gorilla/mux router, which would answer any request for
// an unclean path with a 301 to the clean one, before its middleware.
func Gorilla(h *webhookcfg.Handler) http.Handler {
	r := mux.NewRouter()
	r.HandleFunc("/", home).Methods(http.MethodGet)
	return h.Before(r)
}
