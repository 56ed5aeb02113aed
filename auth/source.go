package auth

import (
	"context"
	"net/netip"

	"example.com/go-webhookcfg/internal/source"
)

// ContextWithSource returns a context with the address that a request came from, without a
// zone, and as IPv4 if it's mapped. [Throttle] limits sign-ins by it, and it appears as
// [webhookcfg.Event.Source]. You rarely need it: the middleware of [WithSource] calls it.
func ContextWithSource(ctx context.Context, addr netip.Addr) context.Context {
	return source.With(ctx, addr)
}

// SourceAddr returns the address that a request came from, if ctx has a valid one. A verifier of
// your own can limit sign-ins by it.
func SourceAddr(ctx context.Context) (addr netip.Addr, ok bool) { return source.Of(ctx) }

// network returns the part of an address that a client can't vary if it has a single address
// or a /64 network. Without an address it's invalid.
func network(addr netip.Addr) netip.Prefix { return prefixOf(addr, 64) }

// site returns the part of an address that a client can't vary even if it has a whole site
// (RFC 6177 §2).
func site(addr netip.Addr) netip.Prefix { return prefixOf(addr, 48) }

func prefixOf(addr netip.Addr, bits6 int) netip.Prefix {
	bits := 32
	if addr.Is6() {
		bits = bits6
	}
	prefix, _ := addr.Prefix(bits) // only fails without an address
	return prefix
}
