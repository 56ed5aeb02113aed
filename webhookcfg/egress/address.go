package egress

import "net/netip"

// CheckAddr returns nil if addr may be called, and otherwise a [PolicyError]. It is the
// one predicate on addresses: for the literal address in a URL, for the answers
// of a resolver, and for the address that is about to be dialled.
func (p *Policy) CheckAddr(addr netip.Addr) error {
	if addr.Zone() != "" {
		return ErrZone
	}
	// A prefix contains no IPv4-mapped address, whatever it says.
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
	case p.own.includes(addr, p.LocalAddrs):
		return ErrAddressDenied
	}
	return nil
}

// matches reports whether a prefix contains addr, which is not IPv4-mapped. For
// a prefix that cannot be meant it answers ifUnusable.
func matches(prefixes []netip.Prefix, addr netip.Addr, ifUnusable bool) bool {
	for _, prefix := range prefixes {
		if prefix.Contains(addr) || ifUnusable && !usable(prefix) {
			return true
		}
	}
	return false
}

func usable(prefix netip.Prefix) bool {
	return prefix.IsValid() && !prefix.Addr().Is4In6()
}

var (
	loopbackIPv4 = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	loopbackIPv6 = netip.IPv6Loopback()
)

func (p *Policy) allowsLoopback() bool {
	return p.CheckAddr(loopbackIPv4) == nil || p.CheckAddr(loopbackIPv6) == nil
}

// embeddedIPv4 returns the last 32 bits of an address (RFC 6052 section 2.2, /96).
func embeddedIPv4(addr netip.Addr) netip.Addr {
	b := addr.As16()
	return netip.AddrFrom4([4]byte(b[12:]))
}
