package webhookcfg

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"example.com/go-webhookcfg/webhookcfg/egress"
)

// request is the state of one request. If no route matches, the request never reaches an
// operation.
type request struct {
	operation
	w         http.ResponseWriter
	r         *http.Request
	match     match
	unmatched *apiError // if no route matches
	result    []byte    // the body of the response if the operation succeeds
}

// ServeHTTP performs the operation, responds, and reports the outcome, each exactly once.
func (q *request) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q.w, q.r = w, r
	if q.unmatched != nil {
		q.respond(q.unmatched)
		return
	}
	ctx, cancel := context.WithDeadline(q.r.Context(), q.start.Add(q.h.options.Timeout))
	defer cancel()
	e := q.attempt(ctx, q.perform)
	if e.isAbort() {
		panic(http.ErrAbortHandler) // not the wrapped value, since net/http only recognizes this one
	}
	q.respond(e)
	q.report(ctx)
}

// perform authenticates the client and performs the operation.
func (q *request) perform(ctx context.Context) *apiError {
	if e := q.authenticate(ctx); e != nil {
		return e
	}
	if e := checkEscaping(q.r.URL); e != nil {
		return e
	}
	switch q.event.Operation {
	case opRead:
		return q.read(ctx)
	case opList:
		return q.list(ctx)
	}
	scope, e := q.scope()
	if e != nil {
		return e
	}
	q.result = success
	return q.change(ctx, scope)
}

// authenticate signs the client in.
func (q *request) authenticate(ctx context.Context) *apiError {
	id, secret, token, err := basicCredentials(q.r.Header)
	if err != nil {
		return invalidClient(err)
	}
	q.secrets[0] = token
	_, e := q.signIn(ctx, id, secret)
	return e
}

func (q *request) read(ctx context.Context) *apiError {
	scope, e := q.pathScope()
	if e != nil {
		return e
	}
	hook, e := q.webhook(ctx, scope)
	if e != nil {
		return e
	}
	shown := newWebhookJSON(q.match.resource.idKey, scope.Entity(), hook)
	shown.Source = hook.Source.String()
	delivery, e := q.delivery(ctx, scope.Entity(), hook)
	if e != nil {
		return e
	}
	shown.Delivery = newDeliveryJSON(delivery)
	q.result, e = marshal(shown)
	return e
}

func (q *request) list(ctx context.Context) *apiError {
	after, limit, e := pageQuery(q.r.URL.RawQuery, q.h.entities)
	if e != nil {
		return e
	}
	page, e := q.page(ctx, after, limit)
	if e != nil {
		return e
	}
	q.result, e = marshal(newPageJSON(q.match.resource.idKey, page))
	return e
}

// scope reads and checks the scope of a change. For a set it also reads the URL, which is in
// the same body.
func (q *request) scope() (Scope, *apiError) {
	switch {
	case q.event.Operation == opSet:
		return q.bodyScope()
	case q.match.action.form == formEntity:
		return q.pathScope()
	default:
		q.event.Scope = All() // so the event shows it, even if we refuse it
		return All(), q.checkUnsetAll()
	}
}

// bodyScope reads the body of a set.
func (q *request) bodyScope() (Scope, *apiError) {
	data, e := readJSON(q.w, q.r, q.h.options.BodyLimit)
	if e != nil {
		return Scope{}, e
	}
	body, e := decodeSet(data, q.match.resource.idKey)
	if e != nil {
		return Scope{}, e
	}
	q.url = egress.NewURL(body.url)
	if body.hasEntity {
		return q.h.entities.scope(body.entity)
	}
	q.event.Scope = All() // so the event shows it, even if we refuse it
	return All(), q.checkAll()
}

// pathScope returns the scope of the entity that a path names.
func (q *request) pathScope() (Scope, *apiError) {
	id, err := url.PathUnescape(q.match.segment)
	if err != nil {
		return Scope{}, invalidRequest(q.h.entities.rule)
	}
	// Servers other than net/http reuse a path's memory for their next request, but a store
	// or an event may keep the identifier.
	return q.h.entities.scope(strings.Clone(id))
}

// respond writes the response: an error, or the result.
func (q *request) respond(e *apiError) {
	if e == nil {
		write(q.w, http.StatusOK, q.result, q.scopeField())
	} else {
		q.h.newError(e, nil).ServeHTTP(q.w, q.r)
	}
}

// scopeField returns the Webhook-Scope field for a change. A client whose identifier got lost
// can see there that its change reached all entities. It's "" for a read.
func (q *request) scopeField() string {
	switch {
	case q.event.Operation != opSet && q.event.Operation != opUnset:
		return ""
	case q.event.Scope.IsAll():
		return "all"
	default:
		return "entity"
	}
}
