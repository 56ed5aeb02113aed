package webhookcfg

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"example.com/go-webhookcfg/webhookcfg/egress"
)

// Event tells the host how one request ended. It holds no client secret, and a
// URL only in the form that shows scheme, host and port.
type Event struct {
	// Operation is "set", "unset", "read" or "list".
	Operation string
	// Client is who signed in; "" until somebody did.
	Client string
	// Scope is what the request asked for; invalid until that was understood, and
	// in a list.
	Scope Scope
	// URL is what a set asked for; zero until it was found well-formed.
	URL egress.URL
	// Status is the HTTP status of the answer.
	Status int
	// Code is the error code of the answer; "" for a success.
	Code string
	// Duration is the time from the request's arrival to its answer.
	Duration time.Duration
	// Err is why the request failed, where the code does not say it all; with
	// [ProbeWarn] also what the probe of a successful set found.
	Err error
}

// report gives the event to the log and to the hook, as far as they want it.
func (x *exchange) report(ctx context.Context) {
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

// level sorts events for the log: faults of the host's parts are errors, what
// may be an attack is a warning, changes and callers that hung up are news.
func (e *Event) level() slog.Level {
	switch {
	case e.Status == http.StatusServiceUnavailable && errors.Is(e.Err, context.Canceled):
		return slog.LevelInfo
	case e.Status >= http.StatusInternalServerError:
		return slog.LevelError
	case e.Status == http.StatusUnauthorized, e.Status == http.StatusTooManyRequests:
		return slog.LevelWarn
	case e.Status < http.StatusBadRequest && e.Err != nil:
		return slog.LevelWarn
	case e.Status < http.StatusBadRequest && (e.Operation == opNameRead || e.Operation == opNameList):
		return slog.LevelDebug
	default:
		return slog.LevelInfo
	}
}

// attrs are the event as a log record has it.
func (e *Event) attrs() []slog.Attr {
	attrs := append(make([]slog.Attr, 0, 8),
		slog.String("operation", e.Operation),
		slog.Int("status", e.Status),
		slog.Duration("duration", e.Duration))
	if e.Code != "" {
		attrs = append(attrs, slog.String("code", e.Code))
	}
	if e.Client != "" {
		attrs = append(attrs, slog.String("client", e.Client))
	}
	if e.Scope != (Scope{}) {
		attrs = append(attrs, slog.Any("scope", e.Scope))
	}
	if !e.URL.IsZero() {
		attrs = append(attrs, slog.Any("url", e.URL))
	}
	if e.Err != nil {
		attrs = append(attrs, slog.String("error", e.Err.Error()))
	}
	var p *panicError
	if errors.As(e.Err, &p) {
		attrs = append(attrs, slog.String("stack", string(p.stack)))
	}
	return attrs
}
