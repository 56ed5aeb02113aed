package webhookcfg

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"time"
)

// Handler serves the interface. It is safe for concurrent use.
//
// It responds to every path itself, and never redirects or cleans a path. It sets the
// Pattern of a request that reached an operation, so that middleware can name the route.
type Handler struct {
	store     Store
	lister    Lister // nil if the store is not one
	verifier  CredentialVerifier
	options   Options // complete
	routes    routes
	challenge string
	entities  entitySyntax
	// lastChange is the time that the last change was given, in microseconds.
	lastChange atomic.Int64
}

// NewHandler returns a handler over a store and a verifier. Nil options mean the
// zero Options. The error names the argument that is invalid.
func NewHandler(store Store, verifier CredentialVerifier, options *Options) (*Handler, error) {
	if store == nil {
		return nil, errors.New("webhookcfg: nil Store")
	}
	if verifier == nil {
		return nil, errors.New("webhookcfg: nil CredentialVerifier")
	}
	var o Options
	if options != nil {
		o = *options
	}
	if err := o.complete(); err != nil {
		return nil, fmt.Errorf("webhookcfg: %w", err)
	}
	lister, _ := store.(Lister)
	h := &Handler{
		store:     store,
		lister:    lister,
		verifier:  verifier,
		options:   o,
		routes:    newRoutes(&o, lister != nil),
		challenge: `Basic realm="` + o.Realm + `", charset="UTF-8"`,
		entities:  newEntitySyntax(o.ValidEntityID),
	}
	h.lastChange.Store(time.Time{}.UnixMicro()) // so no change gets the zero time, which identifies no setting
	return h, nil
}

// changeTime returns the time for a change. It is never that of another change: records of
// deliveries belong to the webhook that was set at a time.
func (h *Handler) changeTime() time.Time {
	now := h.options.Now().UnixMicro()
	for {
		last := h.lastChange.Load()
		next := max(now, last+1)
		if h.lastChange.CompareAndSwap(last, next) {
			return time.UnixMicro(next).UTC()
		}
	}
}

// Options returns the options of h, with its defaults. Changes to them have no effect.
func (h *Handler) Options() Options {
	o := h.options
	o.Policy, o.VariantAliases = o.Policy.Clone(), slices.Clone(o.VariantAliases)
	return o
}

// ServeHTTP implements [http.Handler].
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &exchange{operation: operation{h: h, start: time.Now(), peer: r.RemoteAddr}, w: w, r: r}
	x.body = newBodyTimer(w, r, h.options.Timeout)
	defer func() { x.body.end(x.responded) }()
	var e *apiError
	if x.match, e = h.routes.match(r.Method, r.URL.EscapedPath()); e != nil {
		x.respond(e)
		return
	}
	r.Pattern = x.match.action.pattern
	x.event.Operation = x.match.action.route.Operation
	x.run()
}

// Routes returns the routes of the handler, for documentation, metrics and policies.
func (h *Handler) Routes() []Route {
	var all []Route
	for _, rs := range h.routes {
		for _, a := range rs.actions {
			all = append(all, a.route)
		}
	}
	return all
}

// Register registers the handler with your mux, such as an [http.ServeMux], by one pattern
// for each route, so that the mux sets the request's Pattern itself. Wrap the mux in
// [Handler.Before] and serve that: the mux alone redirects "…/configure-webhook/e1/.." to
// "…/configure-webhook", which reaches all entities, and clients repeat the method and body.
//
// [Options.BasePath] must be the path at which you serve the mux. Every pattern has a
// method, so you can have a "GET /" of your own. The other standard methods are registered
// too, so that the handler, not the mux, responds 405. A mux under GODEBUG=httpmuxgo121=1
// matches none of these patterns.
func (h *Handler) Register(mux interface{ Handle(string, http.Handler) }) {
	for _, rs := range h.routes {
		patterns := []string{}
		for _, a := range rs.actions {
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

// otherMethods are registered so that the handler, not the mux, responds 405. GET
// includes HEAD, as in every pattern.
var otherMethods = [...]string{
	http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch,
	http.MethodDelete, http.MethodConnect, http.MethodOptions, http.MethodTrace,
}

// Before returns a handler that serves the paths of h and passes every other request to
// next, usually a mux. No path of h is cleaned, decoded or redirected before h has checked
// it. Paths that a mux would clean to a path of h, in any letter case, get 404.
//
// Requests for h's paths bypass next and its middleware. Put middleware that they must pass
// around both: "logged(h.Before(mux))". It must leave their paths as they are.
func (h *Handler) Before(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h.routes.owns(r.URL) {
			h.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}
