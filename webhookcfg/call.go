package webhookcfg

import (
	"context"
	"fmt"
	"time"

	"example.com/go-webhookcfg/webhookcfg/egress"
)

// call is an operation of the host's own code.
type call struct{ operation }

// Set sets the webhook of a client from your own code, such as a dashboard of signed-in
// users. It does what a POST of the client does, with the same checks and the probe, an event
// and a log record, all of which a call of [Store] skips. [Options.AllScope] and
// [Options.OriginalTarget] do not apply. There is no default scope that reaches all entities.
// With [ContextWithActor], the event and the record also say who made the change.
//
// The error is an [*Error] and wraps the cause, such as [ErrInvalidArgument] for an invalid
// client or the zero scope. The call ends with ctx, and after [Options.Timeout]. A panic of the
// store, the prober or a function of the options is an error; one of OnEvent is only logged.
func (h *Handler) Set(ctx context.Context, client string, scope Scope, url string) error {
	c := call{operation{h: h, start: time.Now(), url: egress.NewURL(url)}}
	return c.run(ctx, opNameSet, client, scope)
}

// Unset leaves the scope of a client without a webhook, like a DELETE of the client; see
// [Handler.Set].
func (h *Handler) Unset(ctx context.Context, client string, scope Scope) error {
	c := call{operation{h: h, start: time.Now()}}
	return c.run(ctx, opNameUnset, client, scope)
}

func (c *call) run(ctx context.Context, name, client string, scope Scope) error {
	ctx, cancel := context.WithDeadline(ctx, c.start.Add(c.h.options.Timeout))
	defer cancel()
	c.event.Operation = name
	e := c.attempt(ctx, func(ctx context.Context) *apiError { return c.perform(ctx, client, scope) })
	c.report(ctx)
	if e == nil {
		return nil
	}
	return &Error{Status: e.status(), Code: c.event.Code, Description: e.description, RetryAfter: e.retryAfter, cause: c.event.Err}
}

func (c *call) perform(ctx context.Context, client string, scope Scope) *apiError {
	if !validClientID(client) {
		return serverError(fmt.Errorf("%w: client", ErrInvalidArgument))
	}
	if scope == (Scope{}) {
		return serverError(fmt.Errorf("%w: scope", ErrInvalidArgument))
	}
	c.event.Client = client
	if !scope.IsAll() {
		if _, e := c.h.entities.scope(scope.Entity()); e != nil {
			return e
		}
	}
	return c.change(ctx, scope)
}

// Error is the error of [Handler.Set] and [Handler.Unset], with what the response to a
// request would have held.
type Error struct {
	// Status is the HTTP status.
	Status int
	// Code is the error code, as in the table of the package documentation.
	Code string
	// Description is the text for the client. It holds no input of the caller.
	Description string
	// RetryAfter is how long to wait before the call is repeated; zero if unknown.
	RetryAfter time.Duration

	cause error
}

// Error returns the code, the description and the cause, which is for the host alone.
func (e *Error) Error() string {
	text := "webhookcfg: " + e.Code + ": " + e.Description
	if e.cause != nil {
		text += ": " + e.cause.Error()
	}
	return text
}

// Unwrap returns the cause; nil if the description is complete. URLs in its text show scheme,
// host and port only.
func (e *Error) Unwrap() error { return e.cause }
