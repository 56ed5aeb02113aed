package mounts

import (
	"net/http"

	"example.com/go-webhookcfg/webhookcfg"
	"github.com/julienschmidt/httprouter"
)

// HTTPRouter serves the handler before an httprouter, which would redirect "//hooks/…" and
// "/x/../hooks/…" to a route that it has below /hooks.
func HTTPRouter(h *webhookcfg.Handler) http.Handler {
	r := httprouter.New()
	r.HandlerFunc(http.MethodGet, "/", home)
	return h.Before(r)
}
