package mounts

import (
	"example.com/go-webhookcfg/webhookcfg"
	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/middleware/adaptor"
)

// Fiber2 mounts the handler below a prefix, for every method that fiber knows.
func Fiber2(h *webhookcfg.Handler) *fiber.App {
	app := fiber.New(fiber.Config{DisableStartupMessage: true})
	app.Get("/", adaptor.HTTPHandlerFunc(home))
	app.Use("/hooks", adaptor.HTTPHandler(detached(h)))
	return app
}
