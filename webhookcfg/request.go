package webhookcfg

import (
	"context"
	"log/slog"
	"net/http"
	"time"
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
		q.logUnserved(r.Context())
		return
	}
	q.run(r.Context(), q.perform, q.respond)
}

// logUnserved tells the host about requests that its options, or its store, could have served.
func (q *request) logUnserved(ctx context.Context) {
	if q.unmatched.cause == nil {
		return
	}
	defer q.recoverReport(ctx)
	q.recordOutcome(q.unmatched)
	q.event.Operation, q.event.Duration, q.event.Source = opRead, time.Since(q.start), q.source(ctx)
	q.h.options.Logger.LogAttrs(ctx, slog.LevelInfo, "webhook configuration request", q.event.attrs()...)
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
	e = q.change(ctx, scope)
	if e != nil && e.code == codeInvalidWebhookURL && q.url.IsZero() {
		e.description += ruleToUnset
	}
	return e
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
