package egress

import (
	"net"
	"net/netip"
	"sort"
	"sync"
	"time"
)

// CheckAddr returns nil if addr may be called, and a [PolicyError] otherwise. It
// applies to the literal address in a URL, to the results of name resolution, and
// to the address of a socket that is about to connect.
func (p *Policy) CheckAddr(addr netip.Addr) error {
	if addr.Zone() != "" {
		return ErrZone
	}
	// netip.Prefix.Contains is false for every IPv4-mapped address.
	addr = addr.Unmap()
	switch {
	case matches(p.DenyPrefixes, addr, true):
		return ErrAddressDenied
	case matches(p.AllowPrefixes, addr, false):
		return nil
	case p.AllowNAT64 && nat64.Contains(addr):
		return p.CheckAddr(embeddedIPv4(addr))
	case !isPublic(addr):
		return ErrNotPublic
	case p.local.mayContain(addr, p.LocalAddrs):
		return ErrAddressDenied
	}
	return nil
}

// matches reports whether a prefix contains addr, which is not IPv4-mapped. An
// unusable prefix matches if ifUnusable is set.
func matches(prefixes []netip.Prefix, addr netip.Addr, ifUnusable bool) bool {
	for _, prefix := range prefixes {
		if prefix.Contains(addr) || ifUnusable && !isUsable(prefix) {
			return true
		}
	}
	return false
}

func isUsable(prefix netip.Prefix) bool {
	return prefix.IsValid() && !prefix.Addr().Is4In6()
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

// localAddrsMaxAge is how long a list of local addresses is used. It bounds the cost
// of reading the list, and the time until a new address is noticed.
const localAddrsMaxAge = 10 * time.Second

// localAddrs caches the addresses of this host.
type localAddrs struct {
	mu     sync.Mutex
	known  map[netip.Addr]bool // nil if unknown
	readAt time.Time
}

// mayContain reports whether addr is a local address. It returns true if the list
// cannot be read.
func (l *localAddrs) mayContain(addr netip.Addr, list func() ([]netip.Addr, error)) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known == nil || time.Since(l.readAt) >= localAddrsMaxAge {
		l.readAt = time.Now()
		l.known = addrSet(list)
	}
	return l.known == nil || l.known[addr]
}

// addrSet returns the listed addresses, or nil if the list cannot be read.
func addrSet(list func() ([]netip.Addr, error)) map[netip.Addr]bool {
	if list == nil {
		list = interfaceAddrs
	}
	addrs, err := list()
	if err != nil {
		return nil
	}
	set := make(map[netip.Addr]bool, len(addrs))
	for _, addr := range addrs {
		set[addr.Unmap().WithZone("")] = true
	}
	return set
}

// interfaceAddrs returns the addresses of the network interfaces.
func interfaceAddrs() ([]netip.Addr, error) {
	prefixes, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
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

// specialIPv4 holds the entries of the IANA IPv4 Special-Purpose Address Registry,
// multicast, and one address that only looks public, in ascending order. Entries within
// another one are omitted, even those marked as globally reachable: none of them is
// the address of an ordinary host.
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

// globalIPv6 is the global unicast space that IANA assigns from. All that is outside
// (loopback, IPv4-mapped, NAT64, unique local, link local, multicast, unassigned)
// needs no list, and cannot be missing from one.
var globalIPv6 = netip.MustParsePrefix("2000::/3")

// specialIPv6 holds the entries of the IANA IPv6 Special-Purpose Address Registry
// within globalIPv6, in the same way as specialIPv4.
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

// isPublic reports whether addr, which is not IPv4-mapped and has no zone, is a
// public unicast address.
func isPublic(addr netip.Addr) bool {
	ranges := specialIPv4
	if !addr.Is4() {
		if !globalIPv6.Contains(addr) {
			return false
		}
		ranges = specialIPv6
	}
	// The prefixes are sorted and do not overlap: only the last one that starts at
	// or before the address can contain it.
	after := sort.Search(len(ranges), func(i int) bool {
		return addr.Less(ranges[i].prefix.Addr())
	})
	return after == 0 || !ranges[after-1].prefix.Contains(addr)
}
