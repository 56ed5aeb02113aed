package webhookcfg

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
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

	readLimited bool // the read deadline is the handler's
	responded   bool // the response is being written, or was
}

// run authenticates the client, performs the operation and responds, once.
func (x *exchange) run(m match) {
	ctx, cancel := context.WithDeadline(x.r.Context(), x.start.Add(x.h.options.Timeout))
	defer cancel()
	defer x.recover(ctx)
	x.limitReadTime()
	var body []byte
	e := x.authenticate(ctx)
	if e == nil {
		body, e = x.operate(ctx, m)
	}
	x.respond(ctx, body, e)
}

// limitReadTime bounds how long the client may take to send its body, even if the
// handler never reads it: the server reads the rest before it responds. A ReadTimeout
// of the server that ends sooner stays in effect. If the ResponseWriter supports no
// read deadlines, only the limits of its server apply.
func (x *exchange) limitReadTime() {
	server, _ := x.r.Context().Value(http.ServerContextKey).(*http.Server)
	if x.r.ContentLength == 0 || server != nil && server.ReadTimeout > 0 && server.ReadTimeout <= x.h.options.Timeout {
		return
	}
	x.readLimited = http.NewResponseController(x.w).SetReadDeadline(x.start.Add(x.h.options.Timeout)) == nil
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
// arguments, without the client's secret and without the path and query of the URL.
func (x *exchange) redacted(text string) string {
	return redact.URL(redact.Secret(text, x.secret), x.url.Reveal(), x.url.String())
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
	return redact.Error(clean, err)
}
