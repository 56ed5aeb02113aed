package egress

import (
	"context"
	"fmt"
	"math"
	"net"
	"net/netip"
	"slices"
	"sort"
	"sync/atomic"
	"time"

	"example.com/go-webhookcfg/internal/singleflight"
)

// CheckAddr returns nil if you can call addr, and a [PolicyError] if you must not. Package
// egress applies it to the literal address in a URL, to the addresses of a name, and to the
// address of a socket that is about to connect. CheckAddr may have to wait for
// [Policy.LocalAddrs]. If that fails, the error wraps [ErrUnavailable].
//
// The first matching line decides:
//
//	address with a zone                        refused
//	address in Policy.DenyPrefixes             refused
//	address in Policy.AllowPrefixes            allowed
//	64:ff9b::/96 with Policy.AllowNAT64        as the IPv4 address embedded in it
//	IPv4 in the special-purpose registry       refused
//	IPv6 outside 2000::/3, or in the registry  refused
//	address of this host                       refused
//	any other                                  allowed
//
// An IPv4-mapped IPv6 address counts as the IPv4 address. The addresses of this host are the
// ones that [Policy.LocalAddrs] returns.
func (p *Policy) CheckAddr(addr netip.Addr) error {
	return p.checkAddr(context.Background(), addr)
}

// checkAddr is CheckAddr, but stops waiting when ctx ends.
func (p *Policy) checkAddr(ctx context.Context, addr netip.Addr) error {
	if addr.Zone() != "" {
		return errZone
	}
	// netip.Prefix.Contains is false for every IPv4-mapped address.
	addr = addr.Unmap()
	switch {
	case p.denies(addr):
		return errAddressDenied
	case p.allows(addr):
		return nil
	case p.AllowNAT64 && nat64.Contains(addr):
		return p.checkAddr(ctx, embeddedIPv4(addr))
	case !isPublic(addr):
		return ErrNotPublic
	}
	local, err := p.local.list(ctx, p.LocalAddrs)
	if err == nil && local.addrs[addr] {
		err = errAddressDenied
	}
	return err
}

// denies reports whether a prefix of DenyPrefixes contains addr, which isn't IPv4-mapped. A
// prefix that we can't use denies everything.
func (p *Policy) denies(addr netip.Addr) bool {
	return slices.ContainsFunc(p.DenyPrefixes, func(prefix netip.Prefix) bool {
		return prefix.Contains(addr) || !isUsable(prefix)
	})
}

// allows reports whether a prefix of AllowPrefixes contains addr, which isn't IPv4-mapped. A
// prefix that we can't use, or that is too wide, allows nothing.
func (p *Policy) allows(addr netip.Addr) bool {
	return slices.ContainsFunc(p.AllowPrefixes, func(prefix netip.Prefix) bool {
		return prefix.Contains(addr) && isUsable(prefix) && !isTooWide(prefix)
	})
}

// isUsable reports whether a prefix means what it says. With bits of a host, as in 10.1.2.3/8, it can
// be meant for one address.
func isUsable(prefix netip.Prefix) bool {
	return prefix.IsValid() && !prefix.Addr().Is4In6() && prefix == prefix.Masked()
}

// isTooWide reports whether a prefix is wider than any entry of the special-purpose
// registries (240.0.0.0/4, fc00::/7). 0.0.0.0/0, for example, contains all of them.
func isTooWide(prefix netip.Prefix) bool {
	if prefix.Addr().Is4() {
		return prefix.Bits() < 4
	}
	return prefix.Bits() < 7
}

var (
	loopbackIPv4 = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	loopbackIPv6 = netip.IPv6Loopback()
)

func (p *Policy) allowsLoopback() bool {
	return p.CheckAddr(loopbackIPv4) == nil || p.CheckAddr(loopbackIPv6) == nil
}

// embeddedIPv4 returns the last 32 bits of addr (RFC 6052 section 2.2, /96).
func embeddedIPv4(addr netip.Addr) netip.Addr {
	b := addr.As16()
	return netip.AddrFrom4([4]byte(b[12:]))
}

const (
	// localAddrsFresh is how long we use a list of local addresses before we ask for another
	// one. Asking at every check would cost too much.
	localAddrsFresh = 10 * time.Second

	// localAddrsMaxAge is how long we use a list if the next one is late or fails.
	localAddrsMaxAge = time.Minute

	// localAddrsTimeout bounds the request for a list. It's less than the timeout of a probe,
	// which would otherwise blame the target. A check that can use the previous list waits
	// for localAddrsWait only.
	localAddrsTimeout = 3 * time.Second
	localAddrsWait    = 100 * time.Millisecond
)

// localAddrs caches the addresses of this host.
type localAddrs struct {
	latest  atomic.Pointer[addrList]
	request singleflight.Group[*addrList]
}

type addrList struct {
	addrs map[netip.Addr]bool
	at    time.Time // when the list was requested
}

func (a *addrList) age() time.Duration {
	if a == nil {
		return math.MaxInt64
	}
	return time.Since(a.at)
}

// list returns a list that is recent enough. If there is none before ctx ends, the error
// wraps ErrUnavailable. If source is nil, interfaceAddrs is used.
func (l *localAddrs) list(ctx context.Context, source func(context.Context) ([]netip.Addr, error)) (*addrList, error) {
	latest := l.latest.Load()
	age := latest.age()
	if age < localAddrsFresh {
		return latest, nil
	}
	wait := localAddrsTimeout
	if age < localAddrsMaxAge {
		wait = localAddrsWait
	}
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	next, err := l.request.Do(waiting, "", localAddrsTimeout, func(ctx context.Context) (*addrList, error) {
		return l.read(ctx, source)
	})
	switch {
	case err == nil:
		return next, nil
	case age < localAddrsMaxAge:
		return latest, nil
	default:
		return nil, fmt.Errorf("%w: can't list the addresses of this host: %w", ErrUnavailable, err)
	}
}

func (l *localAddrs) read(ctx context.Context, source func(context.Context) ([]netip.Addr, error)) (*addrList, error) {
	if latest := l.latest.Load(); latest.age() < localAddrsFresh {
		return latest, nil // it arrived just before this request
	}
	if source == nil {
		source = interfaceAddrs
	}
	next := &addrList{addrs: map[netip.Addr]bool{}, at: time.Now()}
	addrs, err := source(ctx)
	if err != nil {
		return nil, err
	}
	for _, addr := range addrs {
		next.addrs[addr.Unmap().WithZone("")] = true
	}
	l.latest.Store(next)
	return next, nil
}

// interfaceAddrs returns the addresses of the network interfaces.
func interfaceAddrs(context.Context) ([]netip.Addr, error) {
	prefixes, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("%w: on Linux, a sandbox must allow sockets of AF_NETLINK, or set Policy.LocalAddrs", err)
	}
	addrs := make([]netip.Addr, 0, len(prefixes))
	for _, p := range prefixes {
		if prefix, err := netip.ParsePrefix(p.String()); err == nil {
			addrs = append(addrs, prefix.Addr())
		}
	}
	return addrs, nil
}

// specialPrefix is a range that contains no address of a webhook receiver.
type specialPrefix struct {
	prefix netip.Prefix
	name   string // name and reference of the registry entry, or the reason
}

func special(prefix, name string) specialPrefix {
	return specialPrefix{netip.MustParsePrefix(prefix), name}
}

// specialIPv4 has the entries of the IANA IPv4 Special-Purpose Address Registry, multicast,
// and one address that only looks public, in ascending order. It leaves out entries within
// another one, even if IANA marks them as globally reachable: no ordinary host has such an
// address.
var specialIPv4 = []specialPrefix{
	special("0.0.0.0/8", "This network, RFC 791"),
	special("10.0.0.0/8", "Private-Use, RFC 1918"),
	special("100.64.0.0/10", "Shared Address Space, RFC 6598"),
	special("127.0.0.0/8", "Loopback, RFC 1122"),
	special("168.63.129.16/32", "the platform inside every Azure network"),
	special("169.254.0.0/16", "Link Local, RFC 3927"),
	special("172.16.0.0/12", "Private-Use, RFC 1918"),
	special("192.0.0.0/24", "IETF Protocol Assignments, RFC 6890"),
	special("192.0.2.0/24", "Documentation (TEST-NET-1), RFC 5737"),
	special("192.31.196.0/24", "AS112-v4, RFC 7535"),
	special("192.52.193.0/24", "AMT, RFC 7450"),
	special("192.88.99.0/24", "Deprecated (6to4 Relay Anycast), RFC 7526"),
	special("192.168.0.0/16", "Private-Use, RFC 1918"),
	special("192.175.48.0/24", "Direct Delegation AS112 Service, RFC 7534"),
	special("198.18.0.0/15", "Benchmarking, RFC 2544"),
	special("198.51.100.0/24", "Documentation (TEST-NET-2), RFC 5737"),
	special("203.0.113.0/24", "Documentation (TEST-NET-3), RFC 5737"),
	special("224.0.0.0/4", "Multicast, RFC 5771"),
	special("240.0.0.0/4", "Reserved and Limited Broadcast, RFC 1112 and RFC 8190"),
}

// globalIPv6 is the global unicast space that IANA assigns from. Everything outside it
// (loopback, IPv4-mapped, NAT64, unique local, link local, multicast, unassigned) needs no
// list, so no list can miss it.
var globalIPv6 = netip.MustParsePrefix("2000::/3")

// specialIPv6 has the entries of the IANA IPv6 Special-Purpose Address Registry within
// globalIPv6, chosen like specialIPv4.
var specialIPv6 = []specialPrefix{
	special("2001::/23", "IETF Protocol Assignments, RFC 2928"),
	special("2001:db8::/32", "Documentation, RFC 3849"),
	special("2002::/16", "6to4, RFC 3056"),
	special("2620:4f:8000::/48", "Direct Delegation AS112 Service, RFC 7534"),
	special("3ffe::/16", "returned by the 6bone, RFC 3701"),
	special("3fff::/20", "Documentation, RFC 9637"),
}

// nat64 is the well-known prefix of RFC 6052.
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// isPublic reports whether addr is a public unicast address. The caller has made sure that
// addr isn't IPv4-mapped and has no zone.
func isPublic(addr netip.Addr) bool {
	ranges := specialIPv4
	if !addr.Is4() {
		if !globalIPv6.Contains(addr) {
			return false
		}
		ranges = specialIPv6
	}
	// The prefixes are sorted and don't overlap, so only the last one that starts at or
	// before the address can contain it.
	after := sort.Search(len(ranges), func(i int) bool {
		return addr.Less(ranges[i].prefix.Addr())
	})
	return after == 0 || !ranges[after-1].prefix.Contains(addr)
}
