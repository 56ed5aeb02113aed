package auth

import "net/netip"

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
