package webhookcfg

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"example.com/go-webhookcfg/webhookcfg/egress"
)

// call is an operation that the host's own code asked for.
type call struct {
	operation
	failuresOnly bool // a success is not reported
}

// Set sets a client's webhook from your own code, for example from a dashboard where people
// are signed in. It checks and probes the URL like a POST from the client, and you get the
// same event and log record. If you called the [Store] yourself, you'd skip all that.
// [Options.AllScope] and [Options.OriginalTarget] don't apply. There's no default scope that
// reaches all entities: you pass [Entity] or [All].
//
// Put the person who makes the change into ctx with [ContextWithActor], and the event and the
// record show it.
//
// The error is an [*Error]. It wraps the cause, such as [ErrInvalidArgument] for an invalid
// client or the zero scope. The call ends with ctx, or after [Options.Timeout]. A panic of
// the store, the prober or a function of the options becomes an error. A panic of OnEvent is
// only logged.
func (h *Handler) Set(ctx context.Context, client string, scope Scope, url string) error {
	c := h.newCall(opNameSet)
	c.url = egress.NewURL(url)
	return c.run(ctx, func(ctx context.Context) *apiError { return c.perform(ctx, client, scope) })
}

// Unset leaves the scope of a client without a webhook, like a DELETE from the client. See
// [Handler.Set].
func (h *Handler) Unset(ctx context.Context, client string, scope Scope) error {
	c := h.newCall(opNameUnset)
	return c.run(ctx, func(ctx context.Context) *apiError { return c.perform(ctx, client, scope) })
}

// Read returns the webhook in effect for an entity, like a GET from the client, with the same
// checks, event and log record. It works without [Options.Reads], too. For the error, see
// [Handler.Set].
func (h *Handler) Read(ctx context.Context, client, entity string) (hook Webhook, err error) {
	c := h.newCall(opNameRead)
	err = c.run(ctx, func(ctx context.Context) (e *apiError) {
		if e := c.actFor(client); e != nil {
			return e
		}
		scope, e := h.entities.scope(entity)
		if e != nil {
			return e
		}
		hook, e = c.webhook(ctx, scope)
		return e
	})
	return hook, err
}

// List returns a client's base and the overrides whose entities come after the given one,
// like a GET from the client without an identifier. See [Lister] and [Handler.Read].
//
// The limit can be 1 to 1000. For after, you can pass any text without slashes, backslashes
// and control characters, such as the start of an identifier. If the store can't list, the
// error wraps [errors.ErrUnsupported]. Ask [Handler.CanList] first.
func (h *Handler) List(ctx context.Context, client, after string, limit int) (page Page, err error) {
	c := h.newCall(opNameList)
	err = c.run(ctx, func(ctx context.Context) (e *apiError) {
		if e := c.actFor(client); e != nil {
			return e
		}
		switch {
		case limit < 1 || limit > maxLimit:
			return serverError(fmt.Errorf("%w: the limit must be 1 to %d", ErrInvalidArgument, maxLimit))
		case after != "" && !safeSegment(after):
			return invalidRequest(h.entities.rule)
		case !c.h.CanList():
			return serverError(fmt.Errorf("%w: the store is not a Lister", errors.ErrUnsupported))
		}
		page, e = c.page(ctx, after, limit)
		return e
	})
	return page, err
}

// CanList reports whether the store is a [Lister], so that you can call [Handler.List].
func (h *Handler) CanList() bool { return h.lister != nil }

// DeliveryStatus returns how the deliveries to a webhook of a client go, like a GET from the
// client, with the same checks of what [Options.DeliveryStatus] returns. The hook must be in
// effect for the entity, as from [Handler.Read]. For a base, pass an empty entity. The State
// is "" if nothing is known, or without that option.
//
// It's a part of a read, so you only get an event and a log record if it fails, with the
// operation "read". For the error, see [Handler.Set].
func (h *Handler) DeliveryStatus(ctx context.Context, client, entity string, hook Webhook) (status DeliveryStatus, err error) {
	c := h.newCall(opNameRead)
	c.failuresOnly = true
	err = c.run(ctx, func(ctx context.Context) (e *apiError) {
		if e := c.actFor(client); e != nil {
			return e
		}
		if c.event.Scope = Entity(entity); entity == "" {
			c.event.Scope = All()
		}
		status, e = c.delivery(ctx, entity, hook)
		return e
	})
	return status, err
}

// SignIn returns the client that an id and a secret belong to. Use it for a login form, or
// for other paths of your service. It asks the verifier like a request does, so you get the
// same event and log record for a refusal, with the operation "sign_in". For the error, see
// [Handler.Set]. A refusal has the code "invalid_client" and wraps [ErrInvalidCredentials].
//
// If your verifier limits sign-ins, put the caller's address into ctx. See
// [ContextWithSource].
func (h *Handler) SignIn(ctx context.Context, id, secret string) (client Client, err error) {
	c := h.newCall(opNameSignIn)
	err = c.run(ctx, func(ctx context.Context) (e *apiError) {
		if !validCredentials(id, secret) {
			return invalidClient(fmt.Errorf("%w: malformed", ErrInvalidCredentials))
		}
		client, e = c.signIn(ctx, id, secret)
		return e
	})
	return client, err
}

// newCall returns a call that starts now.
func (h *Handler) newCall(name string) *call {
	return &call{operation: operation{h: h, start: time.Now(), event: Event{Operation: name}}}
}

func (c *call) run(ctx context.Context, perform func(context.Context) *apiError) error {
	ctx, cancel := context.WithDeadline(ctx, c.start.Add(c.h.options.Timeout))
	defer cancel()
	e := c.attempt(ctx, perform)
	if e != nil || !c.failuresOnly {
		c.report(ctx)
	}
	if e == nil {
		return nil
	}
	return c.h.newError(e, c.event.Err)
}

// actFor lets the call act for a client.
func (c *call) actFor(client string) *apiError {
	if !validClientID(client) {
		return serverError(fmt.Errorf("%w: the client is not a valid Client.ID", ErrInvalidArgument))
	}
	c.event.Client = client
	return nil
}

func (c *call) perform(ctx context.Context, client string, scope Scope) *apiError {
	if e := c.actFor(client); e != nil {
		return e
	}
	if scope == (Scope{}) {
		return serverError(fmt.Errorf("%w: the scope is zero: pass Entity or All", ErrInvalidArgument))
	}
	if !scope.IsAll() {
		if _, e := c.h.entities.scope(scope.Entity()); e != nil {
			return e
		}
	}
	return c.change(ctx, scope)
}

// Error is the error that methods like [Handler.Set] return to your own code. It holds the
// response that a request would have got. As an [http.Handler], it writes that response.
type Error struct {
	// Status is the HTTP status.
	Status int
	// Code is the error code, as in the table of the package documentation.
	Code string
	// Description is the text for the client. It never repeats the caller's input.
	Description string
	// RetryAfter is how long you should wait before you try again. It's zero if that's
	// unknown.
	RetryAfter time.Duration

	cause            error
	challenge, allow string // fields of the response
}

// newError returns the error for the host's code, with the cause as the event shows it.
func (h *Handler) newError(e *apiError, cause error) *Error {
	public := &Error{Status: e.status(), Code: errorTable[e.code].name, Description: e.description, RetryAfter: e.retryAfter, cause: cause, allow: e.allow}
	if e.code == codeInvalidClient {
		public.challenge = h.challenge
	}
	return public
}

// ServeHTTP responds like the handler does, so the response doesn't show the cause. Use it
// for an error that a method of [Handler] returned.
func (e *Error) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	header := w.Header()
	if e.challenge != "" {
		header.Set("WWW-Authenticate", e.challenge)
	}
	if e.allow != "" {
		header.Set("Allow", e.allow)
	}
	if e.RetryAfter > 0 {
		header.Set("Retry-After", wholeSeconds(e.RetryAfter))
	}
	// The codes and descriptions need no escaping: RFC 6749 §5.2 limits their characters.
	write(w, e.Status, []byte(`{"error":"`+e.Code+`","error_description":"`+e.Description+`"}`), "")
}

// Error returns the code, the description and the cause. Don't show it to clients: the cause
// is for you only.
func (e *Error) Error() string {
	text := "webhookcfg: " + e.Code + ": " + e.Description
	if e.cause != nil {
		text += ": " + e.cause.Error()
	}
	return text
}

// Unwrap returns the cause, or nil if the description says it all. You can log its text: URLs
// in it show scheme, host and port only.
func (e *Error) Unwrap() error { return e.cause }
