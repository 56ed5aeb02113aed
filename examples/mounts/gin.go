package mounts

import (
	"net/http"

	"example.com/go-webhookcfg/webhookcfg"
	"github.com/gin-gonic/gin"
)

// Gin mounts the handler below a prefix, in which gin then allows no other route.
func Gin(h *webhookcfg.Handler) http.Handler {
	r := gin.New()
	r.GET("/", gin.WrapF(home))
	r.Any("/hooks/*path", gin.WrapH(h))
	return r
}
