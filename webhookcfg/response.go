package webhookcfg

import (
	"net/http"
	"strconv"
	"time"
)

// success is the body of each set and unset that succeeded.
var success = []byte(`{"message":"successful"}`)

// write writes all responses. With an empty scope, there is no Webhook-Scope field.
func write(w http.ResponseWriter, status int, body []byte, scope string) {
	header := w.Header()
	values := [...]string{"application/json", strconv.Itoa(len(body)), "no-store", "nosniff", scope}
	for i, key := range [...]string{"Content-Type", "Content-Length", "Cache-Control", "X-Content-Type-Options", "Webhook-Scope"} {
		if values[i] != "" {
			header[key] = values[i : i+1 : i+1] // a middleware may append
		}
	}
	w.WriteHeader(status)
	_, _ = w.Write(body) // an error means that the client disconnected
}

// wholeSeconds returns a Retry-After that isn't shorter than d.
func wholeSeconds(d time.Duration) string {
	seconds := d / time.Second
	if d%time.Second > 0 {
		seconds++
	}
	return strconv.FormatInt(int64(seconds), 10)
}
