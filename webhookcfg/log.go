package webhookcfg

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"example.com/go-webhookcfg/internal/redact"
	"example.com/go-webhookcfg/internal/source"
)

// level returns the level of the log record. It's an error if the service failed, and a
// warning for a possible attack, or if a set succeeded although its probe failed. Reads and
// sign-ins that succeed are Debug. The rest is Info, also a client that disconnects.
func (e *Event) level(ctx context.Context, isChange bool) slog.Level {
	switch {
	case e.Status == http.StatusServiceUnavailable && errors.Is(e.Err, context.Canceled) && errors.Is(ctx.Err(), context.Canceled):
		return slog.LevelInfo
	case e.Status >= http.StatusInternalServerError:
		return slog.LevelError
	case e.Status == http.StatusUnauthorized, e.Status == http.StatusTooManyRequests:
		return slog.LevelWarn
	case e.Status < http.StatusBadRequest && e.Err != nil:
		return slog.LevelWarn
	case e.Status < http.StatusBadRequest && !isChange:
		return slog.LevelDebug
	default:
		return slog.LevelInfo
	}
}

// report logs the event and passes it to OnEvent.
func (o *operation) report(ctx context.Context) {
	defer o.recoverReport(ctx)
	isChange := o.isChange || o.event.Operation == opSet || o.event.Operation == opUnset
	level, logger, onEvent := o.event.level(ctx, isChange), o.h.options.Logger, o.h.options.OnEvent
	if onEvent == nil && !logger.Enabled(ctx, level) {
		return
	}
	o.event.Duration, o.event.Source = time.Since(o.start), o.source(ctx)
	if actor, ok := ctx.Value(actorKey{}).(string); ok && (o.event.Operation != opSignIn || o.event.Client != "") {
		o.event.Actor = shownID(actor, o.secrets[1])
	}
	if o.event.Operation == opSet || o.event.Operation == opCheck {
		o.event.URL = o.url // even if the set was refused
	}
	if onEvent != nil {
		defer onEvent(ctx, o.event) // even if the logger panics
	}
	logger.LogAttrs(ctx, level, "webhook configuration request", o.event.attrs()...)
}

func (o *operation) source(ctx context.Context) netip.Addr {
	if addr, ok := source.Of(ctx); ok {
		return addr
	}
	peer, _ := netip.ParseAddrPort(o.peer) // "" in a call from Go, "@" on a Unix socket
	return peer.Addr().Unmap().WithZone("")
}

// recoverReport logs a panic of OnEvent or of the logger. It doesn't change the outcome.
func (o *operation) recoverReport(ctx context.Context) {
	value := recover()
	if value == nil {
		return
	}
	defer func() { _ = recover() }() // the logger can panic, too
	p := o.panicked(value)
	o.h.options.Logger.ErrorContext(ctx, "webhook configuration panic in OnEvent or Logger", "error", redact.Printable(p.Error()), "stack", string(p.stack))
}

// attrs returns the attributes of the log record.
func (e *Event) attrs() []slog.Attr {
	attrs := []slog.Attr{
		slog.String("operation", e.Operation),
		slog.Int("status", e.Status),
		slog.Duration("duration", e.Duration),
	}
	add := func(key, value string) {
		if value != "" {
			attrs = append(attrs, slog.String(key, redact.Printable(value)))
		}
	}
	add("code", e.Code)
	add("description", e.Description)
	add("client", e.Client)
	add("credential", e.Credential)
	add("actor", e.Actor)
	add("secret_name", e.SecretName)
	add("presented_id", e.PresentedID)
	if e.Source.IsValid() {
		add("source", e.Source.String())
	}
	if e.Scope != (Scope{}) {
		add("scope", e.Scope.String())
	}
	add("url", e.URL.String())
	if e.Err != nil {
		attrs = append(attrs, slog.String("error", redact.Printable(e.Err.Error())))
	}
	var p *panicError
	if errors.As(e.Err, &p) {
		attrs = append(attrs, slog.String("stack", string(p.stack)))
	}
	return attrs
}
