package mounts

import (
	"example.com/go-webhookcfg/webhookcfg"
	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/adaptor"
)

// Fiber3 mounts the handler below a prefix, for every method that fiber knows.
func Fiber3(h *webhookcfg.Handler) *fiber.App {
	app := fiber.New()
	app.Get("/", adaptor.HTTPHandlerFunc(home))
	app.Use("/hooks", adaptor.HTTPHandler(detached(h)))
	return app
}
