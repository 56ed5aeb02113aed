package webhookcfg

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"example.com/go-webhookcfg/webhookcfg/egress"
)

// exchange is the state of one request. If no route matches, the request never reaches an
// operation.
type exchange struct {
	operation
	w         http.ResponseWriter
	r         *http.Request
	match     match
	unmatched *apiError // if no route matches
	result    []byte    // the body of the response if the operation succeeds
}

// ServeHTTP performs the operation, responds, and reports the outcome, each exactly once.
func (x *exchange) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x.w, x.r = w, r
	if x.unmatched != nil {
		x.respond(x.unmatched)
		return
	}
	ctx, cancel := context.WithDeadline(x.r.Context(), x.start.Add(x.h.options.Timeout))
	defer cancel()
	e := x.attempt(ctx, x.perform)
	if e.isAbort() {
		panic(http.ErrAbortHandler) // not the wrapped value, since net/http only recognizes this one
	}
	x.respond(e)
	x.report(ctx)
}

// perform authenticates the client and performs the operation.
func (x *exchange) perform(ctx context.Context) *apiError {
	if e := x.authenticate(ctx); e != nil {
		return e
	}
	if u := x.r.URL; u.RawPath != "" && u.EscapedPath() != u.RawPath {
		return invalidRequest(ruleEscaping)
	}
	switch x.event.Operation {
	case opNameRead:
		return x.read(ctx)
	case opNameList:
		return x.list(ctx)
	}
	scope, e := x.scope()
	if e != nil {
		return e
	}
	x.result = success
	return x.change(ctx, scope)
}

// authenticate signs the client in.
func (x *exchange) authenticate(ctx context.Context) *apiError {
	id, secret, token, err := basicCredentials(x.r.Header)
	if err != nil {
		return invalidClient(err)
	}
	x.secrets[0] = token
	_, e := x.signIn(ctx, id, secret)
	return e
}

func (x *exchange) read(ctx context.Context) *apiError {
	scope, e := x.pathScope()
	if e != nil {
		return e
	}
	hook, e := x.webhook(ctx, scope)
	if e != nil {
		return e
	}
	shown := newWebhookJSON(x.match.resource.idKey, scope.Entity(), hook)
	shown.Source = hook.Source.String()
	delivery, e := x.delivery(ctx, scope.Entity(), hook)
	if e != nil {
		return e
	}
	shown.Delivery = newDeliveryJSON(delivery)
	x.result, e = marshal(shown)
	return e
}

func (x *exchange) list(ctx context.Context) *apiError {
	after, limit, e := pageQuery(x.r.URL.RawQuery, x.h.entities)
	if e != nil {
		return e
	}
	page, e := x.page(ctx, after, limit)
	if e != nil {
		return e
	}
	x.result, e = marshal(newPageJSON(x.match.resource.idKey, page))
	return e
}

// scope reads and checks the scope of a change. For a set it also reads the URL, which is in
// the same body.
func (x *exchange) scope() (Scope, *apiError) {
	switch {
	case x.event.Operation == opNameSet:
		return x.bodyScope()
	case x.match.action.form == formEntity:
		return x.pathScope()
	default:
		x.event.Scope = All() // so the event shows it, even if we refuse it
		return All(), x.checkUnsetAll()
	}
}

// bodyScope reads the body of a set.
func (x *exchange) bodyScope() (Scope, *apiError) {
	data, e := readJSON(x.w, x.r, x.h.options.BodyLimit)
	if e != nil {
		return Scope{}, e
	}
	body, e := decodeSet(data, x.match.resource.idKey)
	if e != nil {
		return Scope{}, e
	}
	x.url = egress.NewURL(body.url)
	if body.hasEntity {
		return x.h.entities.scope(body.entity)
	}
	x.event.Scope = All() // so the event shows it, even if we refuse it
	return All(), x.checkAll()
}

// pathScope returns the scope of the entity that a path names.
func (x *exchange) pathScope() (Scope, *apiError) {
	id, err := url.PathUnescape(x.match.segment)
	if err != nil {
		return Scope{}, invalidRequest(x.h.entities.rule)
	}
	// Servers other than net/http reuse a path's memory for their next request, but a store
	// or an event may keep the identifier.
	return x.h.entities.scope(strings.Clone(id))
}

// respond writes the response: an error, or the result.
func (x *exchange) respond(e *apiError) {
	if e == nil {
		write(x.w, http.StatusOK, x.result, x.scopeField())
	} else {
		x.h.newError(e, nil).ServeHTTP(x.w, x.r)
	}
}

// scopeField returns the Webhook-Scope field for a change. A client whose identifier got lost
// can see there that its change reached all entities. It's "" for a read.
func (x *exchange) scopeField() string {
	switch {
	case x.event.Operation != opNameSet && x.event.Operation != opNameUnset:
		return ""
	case x.event.Scope.IsAll():
		return "all"
	default:
		return "entity"
	}
}
