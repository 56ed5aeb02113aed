package mounts

import (
	"net/http"
	"path"
	"testing"

	"example.com/go-webhookcfg/webhookcfg"
	"github.com/gin-gonic/gin"
	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	gorilla "github.com/gorilla/mux"
	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"github.com/julienschmidt/httprouter"
	echo4 "github.com/labstack/echo/v4"
	echo4middleware "github.com/labstack/echo/v4/middleware"
	echo5 "github.com/labstack/echo/v5"
	echo5middleware "github.com/labstack/echo/v5/middleware"
)

// alternative is a mount that isn't in the README.
type alternative struct {
	name   string
	fails  bool // fails the check of package mounttest
	strips bool // strips the prefix, so the handler has no base path
	mount  func(t testing.TB, h *webhookcfg.Handler) http.Handler
}

// alternatives are other mounts that a host might write. The ones that fail also prove that
// the check notices.
var alternatives = []alternative{
	{name: "ServeMux, Register alone", fails: true, mount: func(_ testing.TB, h *webhookcfg.Handler) http.Handler {
		mux := http.NewServeMux()
		mux.HandleFunc("GET /", home)
		h.Register(mux)
		return mux
	}},
	{name: "ServeMux, prefix", fails: true, mount: func(_ testing.TB, h *webhookcfg.Handler) http.Handler {
		mux := http.NewServeMux()
		mux.HandleFunc("GET /{$}", home)
		mux.Handle("/hooks/", h)
		return mux
	}},
	{name: "ServeMux, StripPrefix", fails: true, strips: true, mount: func(_ testing.TB, h *webhookcfg.Handler) http.Handler {
		mux := http.NewServeMux()
		mux.HandleFunc("GET /{$}", home)
		mux.Handle("/hooks/", http.StripPrefix("/hooks", h))
		return mux
	}},
	{name: "chi, Register", mount: func(_ testing.TB, h *webhookcfg.Handler) http.Handler {
		r := chi.NewRouter()
		r.Get("/", home)
		h.Register(r)
		return r
	}},
	{name: "chi, Use", mount: func(_ testing.TB, h *webhookcfg.Handler) http.Handler {
		r := chi.NewRouter()
		r.Use(h.Before)
		r.Get("/", home)
		return r
	}},
	{name: "chi behind CleanPath and StripSlashes", mount: func(_ testing.TB, h *webhookcfg.Handler) http.Handler {
		r := chi.NewRouter()
		r.Use(middleware.CleanPath, middleware.StripSlashes)
		r.Get("/", home)
		r.Mount("/hooks", h)
		return r
	}},
	{name: "chi behind RedirectSlashes", fails: true, mount: func(_ testing.TB, h *webhookcfg.Handler) http.Handler {
		r := chi.NewRouter()
		r.Use(middleware.RedirectSlashes)
		r.Get("/", home)
		r.Mount("/hooks", h)
		return r
	}},
	{name: "gorilla, PathPrefix", fails: true, mount: func(_ testing.TB, h *webhookcfg.Handler) http.Handler {
		r := gorilla.NewRouter()
		r.HandleFunc("/", home).Methods(http.MethodGet)
		r.PathPrefix("/hooks/").Handler(h)
		return r
	}},
	{name: "gorilla, PathPrefix and SkipClean", mount: func(_ testing.TB, h *webhookcfg.Handler) http.Handler {
		r := gorilla.NewRouter().SkipClean(true)
		r.HandleFunc("/", home).Methods(http.MethodGet)
		r.PathPrefix("/hooks/").Handler(h)
		return r
	}},
	{name: "gin with RedirectFixedPath", fails: true, mount: func(_ testing.TB, h *webhookcfg.Handler) http.Handler {
		r := gin.New()
		r.RedirectFixedPath = true
		r.GET("/", gin.WrapF(home))
		r.Any("/hooks/*path", gin.WrapH(h))
		return r
	}},
	{name: "echo v4 behind RemoveTrailingSlash", fails: true, mount: func(_ testing.TB, h *webhookcfg.Handler) http.Handler {
		e := echo4.New()
		e.Pre(echo4middleware.RemoveTrailingSlash())
		e.GET("/", echo4.WrapHandler(http.HandlerFunc(home)))
		e.Any("/hooks/*", echo4.WrapHandler(h))
		return e
	}},
	{name: "echo v5 behind RemoveTrailingSlash", fails: true, mount: func(_ testing.TB, h *webhookcfg.Handler) http.Handler {
		e := echo5.New()
		e.Pre(echo5middleware.RemoveTrailingSlash())
		e.GET("/", echo5.WrapHandler(http.HandlerFunc(home)))
		e.Any("/hooks/*", echo5.WrapHandler(h))
		return e
	}},
	{name: "httprouter, catch-all", fails: true, mount: func(_ testing.TB, h *webhookcfg.Handler) http.Handler {
		r := httprouter.New()
		r.HandlerFunc(http.MethodGet, "/", home)
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete} {
			r.Handler(method, "/hooks/*path", h)
		}
		return r
	}},
	{name: "grpc-gateway, HandlePath", mount: insideGateway},
	// The handler can't see that something in front rewrote the path.
	{name: "a proxy that cleans", fails: true, mount: func(_ testing.TB, h *webhookcfg.Handler) http.Handler {
		return cleaning(h)
	}},
}

// on mounts a handler over the store. It has no base path if the mount strips that.
func (m alternative) on(t testing.TB, st *recorder) http.Handler {
	o := options()
	if m.strips {
		o.BasePath = ""
	}
	return m.mount(t, newHandler(t, st, o))
}

func insideGateway(t testing.TB, h *webhookcfg.Handler) http.Handler {
	mux := runtime.NewServeMux()
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete} {
		err := mux.HandlePath(method, "/hooks/**", func(w http.ResponseWriter, r *http.Request, _ map[string]string) { h.ServeHTTP(w, r) })
		if err != nil {
			t.Fatal(err)
		}
	}
	return mux
}

// cleaning imitates a proxy that cleans paths and forwards the result.
func cleaning(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.URL.Path, r.URL.RawPath = path.Clean(r.URL.Path), ""
		r.RequestURI = r.URL.RequestURI()
		next.ServeHTTP(w, r)
	})
}

// TestMethodOverride: inside grpc-gateway a form can override its method, so a POST becomes a
// DELETE. If the handler comes first, it stays a POST.
func TestMethodOverride(t *testing.T) {
	form := text("POST", configure, "", "Connection: close", "Content-Length: 0",
		"Content-Type: application/x-www-form-urlencoded", "X-HTTP-Method-Override: DELETE")
	st := newRecorder()
	h := newHandler(t, st, options())
	before, err := Gateway(h)
	if err != nil {
		t.Fatal(err)
	}
	if got := outcome(raw(t, serve(t, before), form), st.take()); got != "415 unsupported_media_type" {
		t.Errorf("before: got %s", got)
	}
	if got := outcome(raw(t, serve(t, insideGateway(t, h)), form), st.take()); got != "unset all" {
		t.Errorf("inside: got %s", got)
	}
}
