package webhookcfg

import (
	"context"
	"net/netip"
)

type sourceKey struct{}

// ContextWithSource returns a context with the address that a request came from, without a
// zone, and as IPv4 if it's mapped. Verifiers use it to limit sign-ins, and it appears as [Event.Source]. You rarely need
// it: the middleware [example.com/go-webhookcfg/auth.WithSource] calls it for you.
func ContextWithSource(ctx context.Context, source netip.Addr) context.Context {
	return context.WithValue(ctx, sourceKey{}, source.Unmap().WithZone(""))
}

// SourceAddr returns the address that a request came from, if ctx has a valid one.
func SourceAddr(ctx context.Context) (source netip.Addr, ok bool) {
	source, _ = ctx.Value(sourceKey{}).(netip.Addr)
	return source, source.IsValid()
}

type actorKey struct{}

// ContextWithActor returns a context that says who acts for a client, such as a signed-in user
// of your dashboard or an operator. Pass it to a method like [Handler.Set], or put it into a
// request before the handler serves it. It only changes [Event.Actor] and the attribute
// "actor" of the log record. Use an id that you're allowed to log.
func ContextWithActor(ctx context.Context, actor string) context.Context {
	return context.WithValue(ctx, actorKey{}, actor)
}
