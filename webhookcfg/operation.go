package webhookcfg

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"example.com/go-webhookcfg/webhookcfg/egress"
)

// The operations, as in [Event]. The last two are for calls from Go only.
const (
	opSet    = "set"
	opUnset  = "unset"
	opRead   = "read"
	opList   = "list"
	opSignIn = "sign_in"
	opCheck  = "check"
)

// operation is an operation for a client. A request asked for it, or a call from Go.
type operation struct {
	h     *Handler
	start time.Time
	peer  string // the address of the connection; "" in a call from Go
	event Event
	// url is the URL of a set, even a malformed one, or the webhook whose deliveries are
	// read. secrets are the client's secrets. We redact both in the texts of other packages.
	url     egress.URL
	secrets [2]string
	// isTask means that it's a task of the host's, and isChange that the task changes something.
	isTask, isChange bool
	// failuresOnly means that a success is not reported.
	failuresOnly bool
}

// run performs an operation: it has [Options.Timeout], no panic gets out of it, and when
// respond has told the caller how it went, the log and OnEvent get it too. All entrances, over HTTP
// and from Go, lead here.
func (o *operation) run(ctx context.Context, perform func(context.Context) *apiError, respond func(*apiError)) {
	ctx, cancel := context.WithDeadline(ctx, o.start.Add(o.h.options.Timeout))
	defer cancel()
	e := o.attempt(ctx, perform)
	respond(e)
	if e != nil || !o.failuresOnly {
		o.report(ctx)
	}
}

// attempt performs the operation and records its outcome. If the store, the verifier, the
// prober or a function of the options panics, attempt returns that as an error.
func (o *operation) attempt(ctx context.Context, perform func(context.Context) *apiError) (e *apiError) {
	defer func() {
		if value := recover(); value != nil {
			e = o.panicError(value)
			o.recordOutcome(e)
		}
	}()
	e = perform(ctx)
	o.recordOutcome(e)
	return e
}

// recordOutcome records the outcome in the event.
func (o *operation) recordOutcome(e *apiError) {
	if e == nil {
		o.event.Status = http.StatusOK
		return
	}
	o.event.Err = o.redactedError(e.cause) // first, since the cause's Error method may panic
	o.event.Status, o.event.Code, o.event.Description = e.code.status, e.code.name, e.description
}

// signIn asks the verifier which client the credentials sign in.
func (o *operation) signIn(ctx context.Context, id, secret string) (Client, *apiError) {
	o.secrets[1] = secret
	client, err := o.h.verifier.Verify(ctx, id, secret)
	if err != nil {
		e := verifierError(err)
		if !o.h.options.OmitPresentedID && (e.code == codeInvalidClient || e.code == codeTooManyRequests) {
			o.event.PresentedID = shownID(id, secret)
		}
		return Client{}, e
	}
	if !validClientID(client.ID) {
		return Client{}, serverError(errClientID)
	}
	o.event.Client, o.event.Credential, o.event.SecretName = client.ID, id, client.SecretName
	return client, nil
}

// webhook returns the webhook in effect for the entity of a scope.
func (o *operation) webhook(ctx context.Context, scope Scope) (Webhook, *apiError) {
	o.event.Scope = scope
	if e := o.checkConfigured(ctx, scope); e != nil {
		return Webhook{}, e
	}
	return o.resolve(ctx, scope.Entity())
}

// page returns a page of the client's overrides.
func (o *operation) page(ctx context.Context, after string, limit int) (Page, *apiError) {
	page, err := o.h.lister.List(ctx, o.event.Client, after, limit)
	if err != nil {
		return Page{}, storeError(err)
	}
	return page, nil
}

// change sets or unsets, or only checks a set, as the operation says.
func (o *operation) change(ctx context.Context, scope Scope) *apiError {
	switch o.event.Operation {
	case opSet:
		return o.set(ctx, scope)
	case opCheck:
		return o.checkSet(ctx, SetChange(o.event.Client, scope, o.url))
	default:
		return o.unset(ctx, scope)
	}
}

// set checks the URL before it applies the change, so the store never sees an unchecked one.
func (o *operation) set(ctx context.Context, scope Scope) *apiError {
	c := SetChange(o.event.Client, scope, o.url)
	if e := o.checkSet(ctx, c); e != nil {
		return e
	}
	return o.apply(ctx, c)
}

// checkSet returns why a set isn't possible.
func (o *operation) checkSet(ctx context.Context, c Change) *apiError {
	o.event.Scope = c.Scope
	if err := o.h.options.Policy.CheckContext(ctx, o.url.Reveal()); err != nil {
		return policyError(err)
	}
	if e := o.checkExists(ctx, c.Scope); e != nil {
		return e
	}
	if e := o.checkChange(ctx, c); e != nil {
		return e
	}
	return o.probe(ctx)
}

func (o *operation) unset(ctx context.Context, scope Scope) *apiError {
	o.event.Scope = scope
	if e := o.checkConfigured(ctx, scope); e != nil {
		return e
	}
	c := UnsetChange(o.event.Client, scope)
	if e := o.checkChange(ctx, c); e != nil {
		return e
	}
	return o.apply(ctx, c)
}

func (o *operation) resolve(ctx context.Context, entity string) (Webhook, *apiError) {
	hook, err := o.h.store.Resolve(ctx, o.event.Client, entity)
	if err != nil {
		return Webhook{}, storeError(err)
	}
	return hook, nil
}

// apply applies the checked change, unless the request has ended.
func (o *operation) apply(ctx context.Context, c Change) *apiError {
	if err := ctx.Err(); err != nil {
		return unavailable(err)
	}
	c.Time = o.h.clock.next()
	err := o.h.store.Apply(ctx, c)
	if err == nil {
		return nil
	}
	if e := o.refused(err); e != nil {
		return e
	}
	return storeError(err)
}

// newOperation returns an operation that the host's own code asks for. It starts now.
func (h *Handler) newOperation(name string) *operation {
	return &operation{h: h, start: time.Now(), event: Event{Operation: name}}
}

// callFor performs an operation that the host's own code asked for, for a client.
func (o *operation) callFor(ctx context.Context, client string, perform func(context.Context) *apiError) error {
	return o.call(ctx, func(ctx context.Context) *apiError {
		if !validClientID(client) {
			return serverError(fmt.Errorf("%w: the client is not a valid Client.ID", ErrInvalidArgument))
		}
		o.event.Client = client
		return perform(ctx)
	})
}

// call is like callFor, for an operation that finds out itself who the client is.
func (o *operation) call(ctx context.Context, perform func(context.Context) *apiError) (err error) {
	o.run(ctx, perform, func(e *apiError) {
		if e != nil {
			err = o.h.newError(e, o.event.Err)
		}
	})
	return err
}

// changeChecked is change for a scope that the host's own code chose.
func (o *operation) changeChecked(ctx context.Context, scope Scope) *apiError {
	if scope == (Scope{}) {
		return serverError(fmt.Errorf("%w: the scope is zero: pass Entity or All", ErrInvalidArgument))
	}
	if !scope.IsAll() {
		if _, e := o.h.entities.scope(scope.Entity()); e != nil {
			return e
		}
	}
	return o.change(ctx, scope)
}
