package webhookcfg

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"example.com/go-webhookcfg/internal/redact"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// exchange is one request on its way through the checks to its one answer.
type exchange struct {
	h     *Handler
	w     http.ResponseWriter
	r     *http.Request
	start time.Time

	event  Event
	secret string     // what to hide from texts of others: the client's secret,
	url    egress.URL // and the URL, also before it was found well-formed

	// calling says that the host's store, verifier, catalogue or prober is at work.
	// Who changes it to false has the rest of the exchange to itself.
	calling  atomic.Bool
	mu       sync.Mutex
	answered bool
}

// errAbandoned is why the handler answered while a call still ran.
var errAbandoned = errors.New("webhookcfg: a call went on after its deadline")

// run answers the request, whatever the host's parts do.
func (x *exchange) run(m match) {
	ctx, cancel := context.WithDeadline(x.r.Context(), x.start.Add(x.h.timeout))
	defer cancel()
	// A call that keeps to its context ends at the deadline, and its own error is
	// the better answer. The watchdog is for one that does not: it waits longer.
	watchdog := time.AfterFunc(x.h.timeout+x.h.timeout/8, func() { x.abandon(ctx) })
	defer watchdog.Stop()
	defer x.recover(ctx)
	x.limitReadTime()
	var body []byte
	f := x.authenticate(ctx)
	if f == nil {
		body, f = m.action.serve(x, ctx, m)
	}
	x.answer(ctx, body, f)
}

// call runs fn, a call into the host's parts, under the eye of the watchdog.
func (x *exchange) call(ctx context.Context, fn func() error) error {
	x.calling.Store(true)
	defer x.returned()
	if err := ctx.Err(); err != nil {
		return err
	}
	return fn()
}

// returned takes the exchange back from a call, from the watchdog if that had it.
func (x *exchange) returned() {
	if !x.calling.CompareAndSwap(true, false) {
		x.mu.Lock()
		defer x.mu.Unlock()
	}
}

// abandon answers for a call that still runs. The call keeps its goroutine and
// its connection until it returns, but the caller has an answer, if the host's
// ResponseWriter can flush.
func (x *exchange) abandon(ctx context.Context) {
	defer x.logPanic(ctx) // on a goroutine of its own nobody else would
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.calling.CompareAndSwap(true, false) {
		return
	}
	x.w.Header().Set("Connection", "close") // the next request on it would wait for the call
	x.reply(nil, unavailable(errAbandoned))
	_ = http.NewResponseController(x.w).Flush()
	x.tell(ctx)
}

// answer gives the request its answer, unless it has one.
func (x *exchange) answer(ctx context.Context, body []byte, f *fault) (first bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.answered {
		return false
	}
	x.reply(body, f)
	x.tell(ctx)
	return true
}

// reply writes the answer and notes it in the event. The caller holds mu.
func (x *exchange) reply(body []byte, f *fault) {
	e := &x.event
	if f == nil {
		e.Status, x.answered = http.StatusOK, true
		write(x.w, http.StatusOK, body)
		return
	}
	// The cause is text of others, and making it may panic: before anything is sent.
	e.Err = x.scrub(f.cause)
	e.Status, e.Code, x.answered = f.status(), errorTable[f.code].name, true
	x.h.refuse(x.w, f)
}

// tell gives the event to the log and to the hook, as far as they want it.
func (x *exchange) tell(ctx context.Context) {
	e, level := &x.event, x.event.level()
	logged := x.h.logger.Enabled(ctx, level)
	if !logged && x.h.onEvent == nil {
		return
	}
	e.Duration = time.Since(x.start)
	if logged {
		x.h.logger.LogAttrs(ctx, level, "webhook configuration request", e.attrs()...)
	}
	if x.h.onEvent != nil {
		x.h.onEvent(ctx, *e)
	}
}

// recover turns a panic of the host's parts into a 500. Where the request has
// its answer already, as in a panic of the event hook, it is only logged.
func (x *exchange) recover(ctx context.Context) {
	value := recover()
	if value == nil {
		return
	}
	if err, ok := value.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(value) // the host means to cut the connection
	}
	defer x.logPanic(ctx)
	p := x.panicError(value)
	if !x.answer(ctx, nil, serverError(p)) {
		panic(p)
	}
}

// logPanic ends a panic that comes too late for an answer.
func (x *exchange) logPanic(ctx context.Context) {
	value := recover()
	if value == nil {
		return
	}
	defer func() { _ = recover() }() // the logger itself
	p := x.panicError(value)
	x.h.logger.ErrorContext(ctx, "webhook configuration panic after the answer", "error", p.Error(), "stack", string(p.stack))
}

func (x *exchange) panicError(value any) *panicError {
	if p, ok := value.(*panicError); ok {
		return p
	}
	return &panicError{text: x.redacted(fmt.Sprint(value)), stack: debug.Stack()}
}

// panicError is the cause of a 500 that a panic became.
type panicError struct {
	text  string
	stack []byte
}

func (p *panicError) Error() string { return "panic: " + p.text }

// redacted is a text that others wrote, a driver that quotes its arguments or a
// panic, without the client's secret and without what a URL has behind its port.
func (x *exchange) redacted(text string) string {
	return redact.URL(redact.Secret(text, x.secret), x.url.Reveal(), x.url.String())
}

func (x *exchange) scrub(err error) error {
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
