package mounts

import (
	"net/http"

	"example.com/go-webhookcfg/webhookcfg"
	"github.com/gin-gonic/gin"
	"github.com/go-chi/chi/v5"
	"github.com/gorilla/mux"
	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"github.com/julienschmidt/httprouter"
	echo4 "github.com/labstack/echo/v4"
	echo5 "github.com/labstack/echo/v5"
)

// ServeMux serves the handler before a mux. The mux would redirect a DELETE of an unclean
// path to the clean one, with 307.
func ServeMux(h *webhookcfg.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /", home)
	return h.Before(mux)
}

// Chi mounts the handler below a prefix. Mount doesn't strip it.
func Chi(h *webhookcfg.Handler) http.Handler {
	r := chi.NewRouter()
	r.Get("/", home)
	r.Mount("/hooks", h)
	return r
}

// Gorilla serves the handler before a gorilla/mux router. The router would redirect any
// request for an unclean path to the clean one with 301, even before its middleware.
func Gorilla(h *webhookcfg.Handler) http.Handler {
	r := mux.NewRouter()
	r.HandleFunc("/", home).Methods(http.MethodGet)
	return h.Before(r)
}

// Gin mounts the handler below a prefix. gin allows no other route there.
func Gin(h *webhookcfg.Handler) http.Handler {
	r := gin.New()
	r.GET("/", gin.WrapF(home))
	r.Any("/hooks/*path", gin.WrapH(h))
	return r
}

// Echo4 mounts the handler below a prefix.
func Echo4(h *webhookcfg.Handler) http.Handler {
	e := echo4.New()
	e.GET("/", echo4.WrapHandler(http.HandlerFunc(home)))
	e.Any("/hooks/*", echo4.WrapHandler(h))
	return e
}

// Echo5 mounts the handler below a prefix.
func Echo5(h *webhookcfg.Handler) http.Handler {
	e := echo5.New()
	e.GET("/", echo5.WrapHandler(http.HandlerFunc(home)))
	e.Any("/hooks/*", echo5.WrapHandler(h))
	return e
}

// HTTPRouter serves the handler before an httprouter. With a route below /hooks, the router
// would redirect "//hooks/…" and "/x/../hooks/…" to it.
func HTTPRouter(h *webhookcfg.Handler) http.Handler {
	r := httprouter.New()
	r.HandlerFunc(http.MethodGet, "/", home)
	return h.Before(r)
}

// Gateway serves the handler before a grpc-gateway mux. The mux would respond with 501 to
// methods without a pattern, and honour a form's X-HTTP-Method-Override.
func Gateway(h *webhookcfg.Handler) (http.Handler, error) {
	mux := runtime.NewServeMux()
	err := mux.HandlePath(http.MethodGet, "/", func(w http.ResponseWriter, r *http.Request, _ map[string]string) { home(w, r) })
	return h.Before(mux), err
}
