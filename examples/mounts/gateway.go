package mounts

import (
	"net/http"

	"example.com/go-webhookcfg/webhookcfg"
	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
)

// Gateway serves the handler before a grpc-gateway mux, which would respond with 501 to
// methods without a pattern, and honour the X-HTTP-Method-Override of a form.
func Gateway(h *webhookcfg.Handler) (http.Handler, error) {
	mux := runtime.NewServeMux()
	err := mux.HandlePath(http.MethodGet, "/", func(w http.ResponseWriter, r *http.Request, _ map[string]string) { home(w, r) })
	return h.Before(mux), err
}
