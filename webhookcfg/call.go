package webhookcfg

import (
	"context"
	"errors"
	"fmt"
	"net/http"
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
	c := h.newCall(opNameSet)
	c.url = egress.NewURL(url)
	return c.run(ctx, func(ctx context.Context) *apiError { return c.perform(ctx, client, scope) })
}

// Unset leaves the scope of a client without a webhook, like a DELETE of the client; see
// [Handler.Set].
func (h *Handler) Unset(ctx context.Context, client string, scope Scope) error {
	c := h.newCall(opNameUnset)
	return c.run(ctx, func(ctx context.Context) *apiError { return c.perform(ctx, client, scope) })
}

// Read returns the webhook in effect for an entity of a client, like a GET of the client, and
// with the same checks, event and log record. [Options.Reads] does not apply. The error is
// like that of [Handler.Set].
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

// List returns a client's base, and its overrides after an entity, like a GET of the client
// without an identifier; see [Lister] and [Handler.Read]. The limit is 1 to 1000. Any text can
// be after that has no slashes, backslashes or control characters, such as the start of an
// identifier. The error wraps [errors.ErrUnsupported] unless [Handler.CanList].
func (h *Handler) List(ctx context.Context, client, after string, limit int) (page Page, err error) {
	c := h.newCall(opNameList)
	err = c.run(ctx, func(ctx context.Context) (e *apiError) {
		if e := c.actFor(client); e != nil {
			return e
		}
		switch {
		case limit < 1 || limit > maxLimit:
			return serverError(fmt.Errorf("%w: limit", ErrInvalidArgument))
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

// CanList reports whether the store is a [Lister], which [Handler.List] needs.
func (h *Handler) CanList() bool { return h.lister != nil }

// SignIn returns the client that an id and a secret sign in, for a login form or for other
// requests of your service. It asks the verifier like a request does, so the event and the log
// record of a refusal are the same too, with the operation "sign_in". The error is like that
// of [Handler.Set]: a refusal has the code "invalid_client" and wraps [ErrInvalidCredentials].
//
// Verifiers that limit sign-ins need a source in ctx; see [ContextWithSource].
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
	return &call{operation{h: h, start: time.Now(), event: Event{Operation: name}}}
}

func (c *call) run(ctx context.Context, perform func(context.Context) *apiError) error {
	ctx, cancel := context.WithDeadline(ctx, c.start.Add(c.h.options.Timeout))
	defer cancel()
	e := c.attempt(ctx, perform)
	c.report(ctx)
	if e == nil {
		return nil
	}
	return c.h.newError(e, c.event.Err)
}

// actFor lets the call act for a client.
func (c *call) actFor(client string) *apiError {
	if !validClientID(client) {
		return serverError(fmt.Errorf("%w: client", ErrInvalidArgument))
	}
	c.event.Client = client
	return nil
}

func (c *call) perform(ctx context.Context, client string, scope Scope) *apiError {
	if e := c.actFor(client); e != nil {
		return e
	}
	if scope == (Scope{}) {
		return serverError(fmt.Errorf("%w: scope", ErrInvalidArgument))
	}
	if !scope.IsAll() {
		if _, e := c.h.entities.scope(scope.Entity()); e != nil {
			return e
		}
	}
	return c.change(ctx, scope)
}

// Error is the error of the handler's methods for your own code, such as [Handler.Set]. It
// holds the response that a request would have got, and writes it as an [http.Handler].
type Error struct {
	// Status is the HTTP status.
	Status int
	// Code is the error code, as in the table of the package documentation.
	Code string
	// Description is the text for the client. It holds no input of the caller.
	Description string
	// RetryAfter is how long to wait before the call is repeated; zero if unknown.
	RetryAfter time.Duration

	cause            error
	challenge, allow string // fields of the response
}

// newError returns an error with its cause as far as others may see it.
func (h *Handler) newError(e *apiError, cause error) *Error {
	public := &Error{Status: e.status(), Code: errorTable[e.code].name, Description: e.description, RetryAfter: e.retryAfter, cause: cause, allow: e.allow}
	if e.code == codeInvalidClient {
		public.challenge = h.challenge
	}
	return public
}

// ServeHTTP responds like the handler does, without the cause. It is for an error that a
// method of [Handler] returned.
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
	// Codes and descriptions need no escaping: they have only the characters of RFC 6749 §5.2.
	write(w, e.Status, []byte(`{"error":"`+e.Code+`","error_description":"`+e.Description+`"}`), "")
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
