package mounts

import (
	"context"
	"net/http"

	"example.com/go-webhookcfg/webhookcfg"
	fiber2 "github.com/gofiber/fiber/v2"
	adaptor2 "github.com/gofiber/fiber/v2/middleware/adaptor"
	fiber3 "github.com/gofiber/fiber/v3"
	adaptor3 "github.com/gofiber/fiber/v3/middleware/adaptor"
)

// Fiber2 mounts the handler below a prefix, for every method that fiber knows.
func Fiber2(h *webhookcfg.Handler) *fiber2.App {
	app := fiber2.New(fiber2.Config{DisableStartupMessage: true})
	app.Get("/", adaptor2.HTTPHandlerFunc(home))
	app.Use("/hooks", adaptor2.HTTPHandler(detached(h)))
	return app
}

// Fiber3 mounts the handler below a prefix, for every method that fiber knows.
func Fiber3(h *webhookcfg.Handler) *fiber3.App {
	app := fiber3.New()
	app.Get("/", adaptor3.HTTPHandlerFunc(home))
	app.Use("/hooks", adaptor3.HTTPHandler(detached(h)))
	return app
}

// detached gives a handler a context that doesn't use fiber's memory. After the response,
// fiber gives the memory of its context to the next request, but a context derived from it
// may still read it when its deadline passes. You lose nothing: fiber doesn't cancel its
// context when a client disconnects.
func detached(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(context.WithoutCancel(r.Context())))
	})
}
