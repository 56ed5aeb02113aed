// Package source keeps the address that a request came from in its context. Package auth finds it
// out and limits sign-ins by it, and the handler and the page show it in events and logs.
package source

import (
	"context"
	"net/netip"
)

type key struct{}

// With returns a context with an address. An IPv4-mapped one becomes the IPv4 address, and a zone
// is removed.
func With(ctx context.Context, addr netip.Addr) context.Context {
	return context.WithValue(ctx, key{}, addr.Unmap().WithZone(""))
}

// Of returns the address in a context, if it has a valid one.
func Of(ctx context.Context) (addr netip.Addr, ok bool) {
	addr, _ = ctx.Value(key{}).(netip.Addr)
	return addr, addr.IsValid()
}
