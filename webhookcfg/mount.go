package webhookcfg

import (
	"net/http"
	"slices"
)

// Routes lists what the handler serves, for documentation, metrics and policies.
func (h *Handler) Routes() []Route {
	var all []Route
	for _, actions := range h.routes.actions {
		for _, a := range actions {
			all = append(all, a.route)
		}
	}
	return all
}

// Mux is what [Handler.Register] needs of a host's mux, such as [http.ServeMux].
type Mux interface {
	// Handle registers a handler for a pattern of the form "METHOD /path".
	Handle(pattern string, handler http.Handler)
}

// Register puts the handler on the host's mux with one pattern for each route,
// so that the mux itself names the route in the request's Pattern. It needs the
// handler's base path to be where the mux is served.
//
// The other standard methods are registered too, so that a 405 comes from the
// handler; no pattern is without a method, so that a host may have a "GET /".
//
// A mux still redirects paths that it would clean, before the handler sees them:
// "…/configure-webhook/e1/.." becomes "…/configure-webhook", which reaches all
// entities, and clients follow with the same method and body. Wrap the mux in
// [Handler.Before] to have such paths refused. Under GODEBUG=httpmuxgo121=1 a
// mux knows no methods in patterns and finds none of these.
func (h *Handler) Register(mux Mux) {
	for i, rs := range h.routes.resources {
		patterns := []string{}
		for _, a := range h.routes.actions[i] {
			patterns = append(patterns, a.pattern)
		}
		for _, method := range otherMethods {
			patterns = append(patterns, method+" "+rs.root, method+" "+rs.root+"/")
		}
		slices.Sort(patterns)
		for _, pattern := range slices.Compact(patterns) {
			mux.Handle(pattern, h)
		}
	}
}

// otherMethods are the methods that a 405 of ours may answer. GET stands for HEAD
// too, as it does in a pattern.
var otherMethods = [...]string{
	http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch,
	http.MethodDelete, http.MethodConnect, http.MethodOptions, http.MethodTrace,
}

// Before returns a handler that serves our paths itself and hands every other
// request to next. It stands before a mux, so that no path of ours is cleaned,
// decoded or redirected before it is judged, and refuses with 404 what a mux would
// clean to one of our paths, in whatever letter case.
func (h *Handler) Before(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h.routes.claims(r.URL) {
			h.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}
