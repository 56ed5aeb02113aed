package mounts

import (
	"context"
	"net/http"
)

// detached gives a handler on fiber a context that fiber cannot take back. Its own
// is not cancelled when a caller hangs up, so nothing is lost; but its memory goes
// to another request as soon as this one is answered, while a context derived from
// it, whose deadline has just passed, may still be looking into it.
func detached(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(context.WithoutCancel(r.Context())))
	})
}
