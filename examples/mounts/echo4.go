package mounts

import (
	"net/http"

	"example.com/go-webhookcfg/webhookcfg"
	"github.com/labstack/echo/v4"
)

// Echo4 mounts the handler below a prefix.
func Echo4(h *webhookcfg.Handler) http.Handler {
	e := echo.New()
	e.GET("/", echo.WrapHandler(http.HandlerFunc(home)))
	e.Any("/hooks/*", echo.WrapHandler(h))
	return e
}
