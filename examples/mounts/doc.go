// Package mounts serves the handler on the Go routers that hosts use, each in one
// line, next to a route of the host. It is compiled and tested; a host copies a line
// rather than import the package. README.md compares them.
//
// With every mount here, no path that names one entity, or that is malformed, ever
// reaches all entities, also where a client follows redirects with the same method.
// The tests send one table of requests to each, and to plausible mounts that fail it.
//
// Every function expects a handler whose base path is /hooks.
package mounts

import (
	"io"
	"net/http"
)

// welcome is the response of the host's own route, "GET /".
const welcome = "home"

func home(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, welcome) }
