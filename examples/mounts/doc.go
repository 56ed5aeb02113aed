// Package mounts shows how to mount the handler on the Go routers that you may use, each in
// one line, next to a route of your own. Don't import it: copy the line. README.md compares
// the routers.
//
// With every mount here, a path that names one entity or is malformed never reaches all
// entities, even if the client follows redirects with the same method. The tests send the
// same requests to each of them, and also to mounts that look plausible but fail.
//
// All functions expect a handler with the base path /hooks.
package mounts

import (
	"io"
	"net/http"
)

// welcome is the response of the host's own route, "GET /".
const welcome = "home"

func home(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, welcome) }
