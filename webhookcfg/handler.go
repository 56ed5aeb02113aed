package webhookcfg

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"example.com/go-webhookcfg/internal/bodytimer"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// Handler is the HTTP handler. Create it with [NewHandler]. It's safe for concurrent use.
//
// It responds to every path itself, with 404 if it has to, and never redirects or cleans one.
// If a request reaches an operation, the handler sets its Pattern, so your middleware can
// name the route.
type Handler struct {
	store     Store
	lister    Lister // nil if the store isn't one
	verifier  CredentialVerifier
	options   Options // with all defaults
	routes    routes
	challenge string
	entities  entitySyntax
	clock     *clock
}

// NewHandler returns a handler that keeps webhooks in your store and signs clients in with
// your verifier. For the defaults, pass nil options. The error says which argument is
// invalid.
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
	return &Handler{
		store:     store,
		lister:    lister,
		verifier:  verifier,
		options:   o,
		routes:    newRoutes(&o, lister != nil),
		challenge: basicChallenge(o.Realm),
		entities:  newEntitySyntax(o.ValidEntityID),
		clock:     newClock(o.Now),
	}, nil
}

// Options returns a copy of the handler's options, with the defaults filled in.
func (h *Handler) Options() Options {
	o := h.options
	o.Policy, o.VariantAliases, o.Refusals = o.Policy.Clone(), slices.Clone(o.VariantAliases), slices.Clone(o.Refusals)
	return o
}

// ServeHTTP implements [http.Handler].
//
// A body that never comes ends after [Options.Timeout] if the ResponseWriter supports read
// deadlines. Those of [http.Server] do, but not below an [http.TimeoutHandler], or below a
// middleware that wraps the ResponseWriter without a method Unwrap: see
// [http.NewResponseController]. There, and below one that can end a body early, such as an
// [io.LimitReader] or a decoder, only [http.Server.ReadTimeout] ends it, so always set that.
// Only [http.Server.WriteTimeout] ends a connection whose client doesn't read its responses.
//
// The handler waits for a function that ignores ctx. If you can't rely on your store, verifier
// or prober, wrap the handler in an [http.TimeoutHandler].
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := &request{operation: operation{h: h, start: time.Now(), peer: r.RemoteAddr}}
	if q.match, q.unmatched = h.routes.match(r.Method, r.URL.EscapedPath()); q.unmatched == nil {
		r.Pattern = q.match.action.pattern
		q.event.Operation = q.match.action.operation
	}
	bodytimer.Serve(q, h.options.Timeout, w, r)
}

// Register registers the handler with your mux, such as an [http.ServeMux], with a pattern
// for each route. You still need [Handler.Before] around the mux: otherwise it redirects
// "…/configure-webhook/e1/.." to "…/configure-webhook", which reaches all entities, and
// clients repeat the method and the body there. [Options.BasePath] must be the path at which
// you serve the mux.
//
// Every pattern has a method, so you can still have a "GET /" of your own. Register also takes
// the other standard methods of these paths, so that the handler responds 405, and not the
// mux. Don't run with GODEBUG=httpmuxgo121=1: such a mux matches none of these patterns.
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

// otherMethods are registered so that the handler responds 405, and not the mux. GET includes
// HEAD, as in every pattern.
var otherMethods = [...]string{
	http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch,
	http.MethodDelete, http.MethodConnect, http.MethodOptions, http.MethodTrace,
}

// Before returns a handler that serves the paths of h, and passes every other request to
// next, which is usually your mux. So nothing cleans, decodes or redirects a path of h before
// h has checked it. A path that a mux would clean to a path of h gets 404, regardless of
// letter case. If you serve h below a prefix, set [Options.BasePath], because Before can't
// know a prefix that next strips.
//
// Requests for h's paths bypass next. Put middleware that they should pass around both, as in
// "logged(h.Before(mux))". It must leave the paths alone.
func (h *Handler) Before(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h.routes.owns(r.URL) {
			h.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Set sets a client's webhook from your own code, for example from a dashboard where people
// are signed in. It checks and probes the URL like a POST from the client, and you get the
// same event and log record, with the person that you put into ctx with [ContextWithActor].
// [Options.AllScope] and [Options.OriginalTarget] don't apply: you pass [Entity] or [All].
//
// The error is an [*Error]. It wraps the cause, such as [ErrInvalidArgument] for an invalid
// client or the zero scope. The call ends with ctx, or after [Options.Timeout]. A panic of
// the store, the prober or a function of the options becomes an error. A panic of OnEvent is
// only logged.
func (h *Handler) Set(ctx context.Context, client string, scope Scope, url string) error {
	o := h.newOperation(opSet)
	o.url = egress.NewURL(url)
	return o.callFor(ctx, client, func(ctx context.Context) *apiError { return o.changeChecked(ctx, scope) })
}

// Check checks and probes a URL like [Handler.Set], and changes nothing. So you can tell
// people whether they could set it. The event has the operation "check".
func (h *Handler) Check(ctx context.Context, client string, scope Scope, url string) error {
	o := h.newOperation(opCheck)
	o.url = egress.NewURL(url)
	return o.callFor(ctx, client, func(ctx context.Context) *apiError { return o.changeChecked(ctx, scope) })
}

// Unset leaves the scope of a client without a webhook, like a DELETE from the client. See
// [Handler.Set].
func (h *Handler) Unset(ctx context.Context, client string, scope Scope) error {
	o := h.newOperation(opUnset)
	return o.callFor(ctx, client, func(ctx context.Context) *apiError { return o.changeChecked(ctx, scope) })
}

// Read returns the webhook in effect for an entity, like a GET from the client, with the same
// checks, event and log record. It works without [Options.Reads], too. For the error, see
// [Handler.Set].
func (h *Handler) Read(ctx context.Context, client, entity string) (hook Webhook, err error) {
	o := h.newOperation(opRead)
	err = o.callFor(ctx, client, func(ctx context.Context) (e *apiError) {
		scope, e := h.entities.scope(entity)
		if e != nil {
			return e
		}
		hook, e = o.webhook(ctx, scope)
		return e
	})
	return hook, err
}

// SignIn returns the client that an id and a secret belong to. Use it for a login form, or
// for other paths of your service. It asks the verifier like a request does, with the same
// event and log record, of the operation "sign_in". If your verifier limits sign-ins, put the
// caller's address into ctx with [example.com/go-webhookcfg/auth.ContextWithSource].
//
// For the error, see [Handler.Set]. A refusal has the code "invalid_client" and wraps
// [ErrInvalidCredentials]. So may an error with the code "too_many_requests", if your
// verifier's does, and then the secret can be right.
func (h *Handler) SignIn(ctx context.Context, id, secret string) (client Client, err error) {
	o := h.newOperation(opSignIn)
	err = o.call(ctx, func(ctx context.Context) (e *apiError) {
		if !validCredentials(id, secret) {
			return invalidClient(fmt.Errorf("%w: malformed", ErrInvalidCredentials))
		}
		client, e = o.signIn(ctx, id, secret)
		return e
	})
	return client, err
}
