package mounts

import (
	"net/http"

	"example.com/go-webhookcfg/webhookcfg"
	"github.com/gorilla/mux"
)

// Gorilla serves the handler before a gorilla/mux router, which would redirect any request
// for an unclean path to the clean one with 301, before its middleware.
func Gorilla(h *webhookcfg.Handler) http.Handler {
	r := mux.NewRouter()
	r.HandleFunc("/", home).Methods(http.MethodGet)
	return h.Before(r)
}
