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
	header["Content-Type"] = []string{"application/json"}
	header["Content-Length"] = []string{strconv.Itoa(len(body))}
	header["Cache-Control"] = []string{"no-store"}
	header["X-Content-Type-Options"] = []string{"nosniff"}
	if scope != "" {
		header["Webhook-Scope"] = []string{scope}
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
