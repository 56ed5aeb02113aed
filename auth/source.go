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

// ContextWithSource returns a context with the source address of a sign-in, for hosts
// that determine it in another way than [WithSource]. An IPv4-mapped address becomes
// the IPv4 address and a zone is removed.
func ContextWithSource(ctx context.Context, source netip.Addr) context.Context {
	return context.WithValue(ctx, sourceKey{}, source.Unmap().WithZone(""))
}

// Source returns the source address of a sign-in, if ctx has a valid one.
func Source(ctx context.Context) (source netip.Addr, ok bool) {
	source, _ = ctx.Value(sourceKey{}).(netip.Addr)
	return source, source.IsValid()
}

// WithSource returns a handler that adds the source address of a request to its context
// before it calls next. [Throttle] requires it. The source is the peer address of the
// connection.
//
// If that is a trusted proxy, the X-Forwarded-For field is read from its end, which the
// proxy wrote, up to the first address that is not a trusted proxy. Addresses further
// left are not trusted, and without trusted proxies the field is ignored. At a
// malformed entry the source is the proxy that sent it. Specify the proxies in front of
// the service: otherwise all clients have the same source.
//
// WithSource copies the request, so it belongs outermost: a handler around it does not
// see the Pattern that a mux inside sets. A connection without an IP address, such as
// a Unix socket's, has no source; use [ContextWithSource] there.
func WithSource(next http.Handler, trustedProxies ...netip.Prefix) http.Handler {
	trusted := proxies(slices.Clone(trustedProxies))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		source := trusted.source(r)
		next.ServeHTTP(w, r.WithContext(ContextWithSource(r.Context(), source)))
	})
}

// proxies are the networks whose X-Forwarded-For entries are trusted.
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

// hopsFromEnd yields the elements of comma-separated lists, the last one first. It is
// lazy, since the lists may be long and hostile.
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

// parseHop parses an address with or without a port.
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
