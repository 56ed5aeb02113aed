package webhookcfg

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"example.com/go-webhookcfg/internal/redact"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// exchange is the state of one request.
type exchange struct {
	h     *Handler
	w     http.ResponseWriter
	r     *http.Request
	start time.Time

	event  Event
	secret string     // of the client; redacted in the texts of other packages
	url    egress.URL // of a set, even if malformed; redacted likewise

	body      *bodyTimer // nil if there is no body
	responded bool       // the response is being written, or was
}

// run authenticates the client, performs the operation and responds, once.
func (x *exchange) run(m match) {
	ctx, cancel := context.WithDeadline(x.r.Context(), x.start.Add(x.h.options.Timeout))
	defer cancel()
	x.body = x.h.limitBody(x.w, x.r)
	defer x.finish()
	defer x.recover(ctx)
	var body []byte
	e := x.authenticate(ctx)
	if e == nil {
		body, e = x.operate(ctx, m)
	}
	x.respond(ctx, body, e)
}

// finish ends the limit of the body, before the ResponseWriter becomes invalid.
func (x *exchange) finish() {
	defer x.h.release(x.body)
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
	p := &panicError{text: x.redacted(fmt.Sprint(value)), stack: debug.Stack()}
	if x.responded {
		defer func() { _ = recover() }() // of the logger: net/http would drop the response
		x.h.options.Logger.ErrorContext(ctx, "webhook configuration panic after response was written", "error", p.Error(), "stack", string(p.stack))
		return
	}
	defer x.recover(ctx)
	x.respond(ctx, nil, serverError(p))
}

// panicError is the cause of a 500 after a panic.
type panicError struct {
	text  string
	stack []byte
}

func (p *panicError) Error() string { return "panic: " + p.text }

// redacted returns a text of another package, such as a driver that quotes its
// arguments, without the client's secret, the token that holds it, and the path and query
// of the URL.
func (x *exchange) redacted(text string) string {
	var secrets []string
	if x.secret != "" {
		_, token, _ := strings.Cut(x.r.Header.Get("Authorization"), " ")
		secrets = []string{strings.TrimLeft(token, " "), x.secret}
	}
	return redact.Text(text, secrets, x.url.Reveal(), x.url.String())
}

func (x *exchange) redactedError(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	clean := x.redacted(text)
	if clean == text {
		return err
	}
	if x.event.Client == "" {
		// The secret of a caller that is not signed in may be chosen to equal the text.
		clean += " (" + errorTypes(err) + ")"
	}
	return redact.Error(clean, err)
}

// errorTypes returns the types of an error and of the first few errors that it wraps.
func errorTypes(err error) string {
	var types []string
	for ; err != nil && len(types) < 8; err = errors.Unwrap(err) {
		types = append(types, fmt.Sprintf("%T", err))
	}
	return strings.Join(types, ": ")
}
