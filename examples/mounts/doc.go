// Package mounts serves the handler on the Go routers that hosts use, each in one
// line, beside a route of the host's own. It is compiled and tested, and the
// README shows its lines; a host copies them rather than import it.
//
// Every mount here keeps the law that no path which means one entity, or which is
// malformed, ever reaches all entities, also where a client follows redirects with
// the same method. The tests hold them to it with one table of requests, and show
// the mounts that look as good and do not keep it.
//
// Every function expects a handler whose base path is /hooks.
package mounts

import (
	"io"
	"net/http"
)

// welcome is what the host itself serves at "GET /".
const welcome = "home"

func home(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, welcome) }
