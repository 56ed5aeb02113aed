package mounts

import (
	"context"
	"net/http"
)

// detached gives a handler a context whose memory fiber does not reuse. Fiber gives the
// memory of its own to the next request after the response, while a context derived from
// it may still read it as its deadline passes. Nothing is lost: fiber does not cancel its
// context when a client disconnects.
func detached(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(context.WithoutCancel(r.Context())))
	})
}
