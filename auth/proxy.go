package auth

import (
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
)

// WithSource returns a middleware that puts a request's source address into its context,
// where [Throttle] looks for it (see [ContextWithSource]). It's the peer address
// of the connection, unless that is a trusted proxy. Name the proxies in front of your
// service, or all clients have the same source. But first see that each sets X-Forwarded-For,
// or adds to it: if it passes on the field as it came, a client chooses its source.
//
// For a request from a trusted proxy, WithSource reads X-Forwarded-For from its end, which
// the proxy wrote, up to the first address that isn't a trusted proxy. It doesn't trust
// addresses further left. At a malformed entry, the source is the proxy that sent it. Without
// trusted proxies the field is ignored.
//
// If a proxy is misconfigured, all clients behind it share a source, and a few wrong guesses
// lock them all out. So WithSource logs a warning once if a trusted proxy doesn't send the
// field, or if requests have it although you trust no proxy, or although they come through a
// private or loopback address that you don't trust. If logger is nil, nothing is logged. WithSource
// returns an error for a network that is invalid, IPv4-mapped or has bits set beyond its length: that
// would trust no proxy, or not the ones you meant.
//
// Put the middleware outermost. It copies the request, so a handler around it doesn't see the
// Pattern that a mux inside sets. A connection without an IP address, such as a Unix
// socket's, has no source: use [ContextWithSource] there.
func WithSource(logger *slog.Logger, trustedProxies ...netip.Prefix) (func(next http.Handler) http.Handler, error) {
	trusted := proxies(slices.Clone(trustedProxies))
	for _, network := range trusted {
		if !network.IsValid() || network.Addr().Is4In6() || network != network.Masked() {
			return nil, fmt.Errorf("auth: trusted proxy %v: not a network like 192.0.2.0/24, 192.0.2.1/32 or 2001:db8::/64", network)
		}
	}
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	var once sync.Once
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			source, isIgnored := trusted.source(r)
			if warning := trusted.warning(r, source, isIgnored); warning != "" {
				once.Do(func() { logger.WarnContext(r.Context(), warning, "proxy", source) })
			}
			next.ServeHTTP(w, r.WithContext(ContextWithSource(r.Context(), source)))
		})
	}, nil
}

// proxies are the networks that we trust to write X-Forwarded-For.
type proxies []netip.Prefix

func (p proxies) contain(addr netip.Addr) bool {
	return slices.ContainsFunc(p, func(network netip.Prefix) bool { return network.Contains(addr) })
}

// source returns the source of a request, and whether X-Forwarded-For has more, which is ignored because
// the source isn't a trusted proxy.
func (p proxies) source(r *http.Request) (source netip.Addr, isIgnored bool) {
	source, _ = parseHop(r.RemoteAddr)
	for hop := range hopsFromEnd(r.Header.Values("X-Forwarded-For")) {
		if !p.contain(source) {
			return source, true
		}
		next, ok := parseHop(strings.Trim(hop, " \t"))
		if !ok {
			break
		}
		source = next
	}
	return source, false
}

// warning returns what's wrong with the proxies, if a request from the given source shows it.
// A proxy's own health checks change nothing and have no credentials, so they don't show that
// the field is missing. Anybody on the internet can send the field, so only an address inside shows that
// the named networks aren't those of the proxies.
func (p proxies) warning(r *http.Request, source netip.Addr, isIgnored bool) string {
	signsIn := r.Method == http.MethodPost || r.Header.Get("Authorization") != ""
	hops := len(r.Header["X-Forwarded-For"]) > 0
	switch isInside := source.IsPrivate() || source.IsLoopback(); {
	case isIgnored && len(p) == 0:
		return "auth: X-Forwarded-For is ignored: if the peer is a proxy, let it set the field, and then name it, or all clients behind it share one source"
	case isIgnored && isInside:
		return "auth: X-Forwarded-For is ignored, because it comes from an address that isn't a trusted proxy: if it's a proxy, let it set the field, and then name its network, or all clients behind it share one source"
	case !hops && signsIn && p.contain(source):
		return "auth: a trusted proxy sends no X-Forwarded-For: all clients behind it share one source"
	}
	return ""
}

// hopsFromEnd yields the elements of comma-separated lists, the last one first. It's lazy,
// since an attacker can send long lists.
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
