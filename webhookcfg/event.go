package webhookcfg

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"example.com/go-webhookcfg/webhookcfg/egress"
)

// Event reports the outcome of one request, or of one call from Go. Its URLs show scheme,
// host and port only. It holds no client secret, unless a caller sent one as its id; see
// PresentedID.
type Event struct {
	// Operation is "set", "unset", "read" or "list", or "sign_in" for a [Handler.SignIn].
	Operation string
	// Client is the client that signed in; "" if none did.
	Client string
	// Credential is the id that signed the client in; "" in a call from Go, except in
	// [Handler.SignIn].
	Credential string
	// Actor is who acted for the client, as [ContextWithActor] said, up to 128 bytes without
	// characters that a log can't show. It is "" for a client that acted itself.
	Actor string
	// PresentedID is the id of a sign-in that was refused (401) or throttled (429), up to
	// 128 bytes without characters that a log can't show. It was not verified, and may be a
	// secret in the wrong field; see [Options.OmitPresentedID]. It is "" if the credentials
	// were malformed, or if it holds the secret that came with it.
	PresentedID string
	// Source is the source address that [ContextWithSource] set, or else that of the
	// connection. It is invalid if there is neither.
	Source netip.Addr
	// SecretName is the [Client.SecretName] of the secret that signed in.
	SecretName string
	// Scope is the scope of the request; invalid if it was not determined, and in a list.
	Scope Scope
	// URL is the webhook URL of a set, even of one that was refused, or zero if the body
	// couldn't be read. It prints as "redacted" if the text doesn't start like an http or
	// https URL with a host.
	URL egress.URL
	// Status is the HTTP status of the response.
	Status int
	// Code is the error code of the response; "" for a success.
	Code string
	// Description is the error description of the response, which names the rule that the
	// request broke; "" for a success. It is a fixed text without any input of the client.
	Description string
	// Duration is the time from the arrival of the request to its response.
	Duration time.Duration
	// Err is the cause of a failure that the code does not describe fully. With
	// [ProbeWarn] it is also the failed probe of a successful set.
	Err error
}

// level returns the level of the log record. Failures of the service are errors, and
// possible attacks are warnings. Changes and client disconnects are logged at Info.
func (e *Event) level(ctx context.Context) slog.Level {
	switch {
	case e.Status == http.StatusServiceUnavailable && errors.Is(e.Err, context.Canceled) && errors.Is(ctx.Err(), context.Canceled):
		return slog.LevelInfo
	case e.Status >= http.StatusInternalServerError:
		return slog.LevelError
	case e.Status == http.StatusUnauthorized, e.Status == http.StatusTooManyRequests:
		return slog.LevelWarn
	case e.Status < http.StatusBadRequest && e.Err != nil:
		return slog.LevelWarn
	case e.Status < http.StatusBadRequest && e.Operation != opNameSet && e.Operation != opNameUnset:
		return slog.LevelDebug
	default:
		return slog.LevelInfo
	}
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
			attrs = append(attrs, slog.String(key, value))
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
		attrs = append(attrs, slog.String("error", e.Err.Error()))
	}
	var p *panicError
	if errors.As(e.Err, &p) {
		add("stack", string(p.stack))
	}
	return attrs
}

type sourceKey struct{}

// ContextWithSource returns a context with the source address of a request, for limits of
// sign-ins and for [Event.Source]. The middleware of package auth, WithSource, calls it. An
// IPv4-mapped address becomes the IPv4 address, and a zone is removed.
func ContextWithSource(ctx context.Context, source netip.Addr) context.Context {
	return context.WithValue(ctx, sourceKey{}, source.Unmap().WithZone(""))
}

// SourceAddr returns the source address of a request, if ctx has a valid one.
func SourceAddr(ctx context.Context) (source netip.Addr, ok bool) {
	source, _ = ctx.Value(sourceKey{}).(netip.Addr)
	return source, source.IsValid()
}

type actorKey struct{}

// ContextWithActor returns a context that says who acts for a client in your own code, such as
// a signed-in user of your dashboard or an operator: give it to [Handler.Set] and
// [Handler.Unset], or to a request before the handler serves it. It changes nothing but
// [Event.Actor] and the attribute "actor" of the log record. Use an id that may be logged.
func ContextWithActor(ctx context.Context, actor string) context.Context {
	return context.WithValue(ctx, actorKey{}, actor)
}
