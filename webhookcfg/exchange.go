package webhookcfg

import (
	"context"
	"errors"
	"net/http"
)

// exchange is the state of one request.
type exchange struct {
	operation
	w         http.ResponseWriter
	r         *http.Request
	body      *bodyTimer // nil if there is no body
	responded bool       // the response is being written, or was
}

// run authenticates the client, performs the operation and responds, once.
func (x *exchange) run(m match) {
	ctx, cancel := context.WithDeadline(x.r.Context(), x.start.Add(x.h.options.Timeout))
	defer cancel()
	x.body = limitBody(x.w, x.r, x.h.options.Timeout)
	defer x.finish()
	defer x.recover(ctx)
	var body []byte
	e := x.authenticate(ctx)
	if e == nil {
		body, e = x.perform(ctx, m)
	}
	x.respond(ctx, body, e)
}

// finish ends the limit of the body, before the ResponseWriter becomes invalid.
func (x *exchange) finish() {
	defer x.body.stop()
	if x.responded {
		x.body.drain(x.r)
	}
}

// recover responds 500 after a panic in the store, the verifier, the prober or a
// function of the options. After the response was written, as in a panic of OnEvent,
// the panic is only logged.
func (x *exchange) recover(ctx context.Context) {
	value := recover()
	if value == nil {
		return
	}
	// A wrapper that shares calls, such as a cache of sign-ins, wraps the panics of its
	// goroutines; net/http recognizes only the bare value.
	if err, ok := value.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(http.ErrAbortHandler)
	}
	p := x.panicked(value)
	if x.responded {
		x.logPanic(ctx, p) // net/http would drop the response
		return
	}
	defer x.recover(ctx)
	x.respond(ctx, nil, serverError(p))
}

// perform performs the operation for the client that is signed in, and returns the
// body of a success.
func (x *exchange) perform(ctx context.Context, m match) ([]byte, *apiError) {
	if u := x.r.URL; u.RawPath != "" && u.EscapedPath() != u.RawPath {
		return nil, invalidRequest(ruleEscaping)
	}
	switch m.action.route.Operation {
	case opNameSet:
		return success, x.serveSet(ctx, m)
	case opNameUnset:
		return success, x.serveUnset(ctx, m)
	case opNameRead:
		return x.read(ctx, m)
	default:
		return x.list(ctx, m)
	}
}

func (x *exchange) serveSet(ctx context.Context, m match) *apiError {
	scope, e := x.readSet(m)
	if e != nil {
		return e
	}
	return x.set(ctx, scope)
}

func (x *exchange) serveUnset(ctx context.Context, m match) *apiError {
	scope, e := x.unsetScope(m)
	if e != nil {
		return e
	}
	return x.unset(ctx, scope)
}

func (x *exchange) read(ctx context.Context, m match) ([]byte, *apiError) {
	scope, e := x.pathScope(m.segment)
	if e != nil {
		return nil, e
	}
	x.event.Scope = scope
	if e := x.checkConfigured(ctx, scope); e != nil {
		return nil, e
	}
	hook, e := x.resolve(ctx, scope.Entity())
	if e != nil {
		return nil, e
	}
	shown := newWebhookJSON(m.action.idKey, scope.Entity(), hook)
	shown.Source = hook.Source.String()
	if shown.Delivery, e = x.delivery(ctx, scope.Entity(), hook); e != nil {
		return nil, e
	}
	return marshal(shown)
}

func (x *exchange) list(ctx context.Context, m match) ([]byte, *apiError) {
	after, limit, e := x.pageQuery()
	if e != nil {
		return nil, e
	}
	page, err := x.h.lister.List(ctx, x.event.Client, after, limit)
	if err != nil {
		return nil, storeError(err)
	}
	return marshal(newPageJSON(m.action.idKey, page))
}
