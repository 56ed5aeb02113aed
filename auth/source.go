package auth

import (
	"context"
	"iter"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

type sourceKey struct{}

// ContextWithSource returns a context that says where a sign-in comes from, for
// hosts that know better than [WithSource]. An IPv4-mapped address becomes the IPv4
// address and a zone is dropped.
func ContextWithSource(ctx context.Context, source netip.Addr) context.Context {
	return context.WithValue(ctx, sourceKey{}, source.Unmap().WithZone(""))
}

// Source returns the address that a sign-in comes from, if ctx has a valid one.
func Source(ctx context.Context) (source netip.Addr, ok bool) {
	source, _ = ctx.Value(sourceKey{}).(netip.Addr)
	return source, source.IsValid()
}

// WithSource returns a handler that tells next where a request comes from: the
// address of the connection. [Throttle] needs it.
//
// If the connection comes from a trusted proxy, the X-Forwarded-For field is read
// from its end, where the proxy wrote, up to the first address that is not a trusted
// proxy's. Nothing further left is believed, and without trusted proxies the field is
// not read at all. A malformed entry ends the reading at the proxy that sent it. A
// service behind a proxy must name it: else all its callers look like one source.
//
// WithSource copies the request, so it belongs outermost: a handler around it does not
// see the Pattern that a mux within it sets. A connection without an IP address, such
// as a Unix socket's, gives no source; use [ContextWithSource] then.
func WithSource(next http.Handler, trustedProxies ...netip.Prefix) http.Handler {
	trusted := proxies(slices.Clone(trustedProxies))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		source := trusted.source(r)
		next.ServeHTTP(w, r.WithContext(ContextWithSource(r.Context(), source)))
	})
}

// proxies are the networks whose word about others is believed.
type proxies []netip.Prefix

func (p proxies) contain(addr netip.Addr) bool {
	return slices.ContainsFunc(p, func(network netip.Prefix) bool { return network.Contains(addr) })
}

func (p proxies) source(r *http.Request) netip.Addr {
	source, _ := parseHop(r.RemoteAddr)
	for hop := range hopsFromEnd(r.Header.Values("X-Forwarded-For")) {
		if !p.contain(source) {
			break
		}
		next, ok := parseHop(strings.Trim(hop, " \t"))
		if !ok {
			break
		}
		source = next
	}
	return source
}

// hopsFromEnd cuts lists into their members, the last one first, and no more of them
// than are asked for: the lists may be long and hostile.
func hopsFromEnd(fields []string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, list := range slices.Backward(fields) {
			for comma := len(list); comma >= 0; {
				list = list[:comma]
				comma = strings.LastIndexByte(list, ',')
				if !yield(list[comma+1:]) {
					return
				}
			}
		}
	}
}

// parseHop reads an address with or without a port.
func parseHop(text string) (netip.Addr, bool) {
	addr, err := netip.ParseAddr(text)
	if err != nil {
		withPort, err := netip.ParseAddrPort(text)
		if err != nil {
			return netip.Addr{}, false
		}
		addr = withPort.Addr()
	}
	return addr.Unmap().WithZone(""), true
}
