package mounts

import (
	"net/http"

	"example.com/go-webhookcfg/webhookcfg"
	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
)

// Gateway stands before a grpc-gateway mux, which would answer 501 for methods it
// has no pattern for, and let a form's X-HTTP-Method-Override change the method.
func Gateway(h *webhookcfg.Handler) (http.Handler, error) {
	mux := runtime.NewServeMux()
	err := mux.HandlePath(http.MethodGet, "/", func(w http.ResponseWriter, r *http.Request, _ map[string]string) { home(w, r) })
	return h.Before(mux), err
}
