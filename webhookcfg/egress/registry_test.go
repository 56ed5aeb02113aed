package egress_test

import (
	"errors"
	"net/netip"
	"testing"

	"example.com/go-webhookcfg/webhookcfg/egress"
)

// registryIPv4 and registryIPv6 are the rows of the IANA special-purpose address
// registries (IPv6 edition of 2025-10-09), those inside other rows and those
// marked globally reachable too, and after them what else is not a public unicast
// address. They are written down apart from the tables of the package.
var registryIPv4 = []string{
	"0.0.0.0/8", "0.0.0.0/32", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8",
	"169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.0.0/29", "192.0.0.8/32",
	"192.0.0.9/32", "192.0.0.10/32", "192.0.0.170/32", "192.0.0.171/32", "192.0.2.0/24",
	"192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16",
	"192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
	"240.0.0.0/4", "255.255.255.255/32",

	"224.0.0.0/4",        // multicast
	"168.63.129.16/32",   // the platform inside Azure
	"100.100.100.200/32", // metadata
	"192.0.0.192/32",     // metadata
	"169.254.169.254/32", // metadata
}

var registryIPv6 = []string{
	"::1/128", "::/128", "::ffff:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64",
	"100:0:0:1::/64", "2001::/23", "2001::/32", "2001:1::1/128", "2001:1::2/128",
	"2001:1::3/128", "2001:2::/48", "2001:3::/32", "2001:4:112::/48", "2001:10::/28",
	"2001:20::/28", "2001:30::/28", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48",
	"3fff::/20", "5f00::/16", "fc00::/7", "fe80::/10",

	"::/3", "4000::/2", "8000::/1", // not global unicast space
	"::/96",                                 // IPv4-compatible
	"::ffff:0:0:0/96",                       // IPv4-translated
	"fec0::/10",                             // site local
	"ff00::/8",                              // multicast
	"3ffe::/16",                             // 6bone
	"fd00:ec2::254/128", "fd20:ce::254/128", // metadata
}

// isSpecial is the model: a row that holds addr, or none.
func isSpecial(addr netip.Addr) bool {
	addr = addr.Unmap()
	rows := registryIPv6
	if addr.Is4() {
		rows = registryIPv4
	}
	for _, row := range rows {
		if netip.MustParsePrefix(row).Contains(addr) {
			return true
		}
	}
	return false
}

// lastOf returns the last address of a prefix.
func lastOf(prefix netip.Prefix) netip.Addr {
	bytes := prefix.Addr().AsSlice()
	for bit := prefix.Bits(); bit < len(bytes)*8; bit++ {
		bytes[bit/8] |= 0x80 >> (bit % 8)
	}
	last, _ := netip.AddrFromSlice(bytes)
	return last
}

// boundaries returns the first and last address of every row and both neighbours
// of each.
func boundaries() []netip.Addr {
	var all []netip.Addr
	for _, row := range append(append([]string{}, registryIPv4...), registryIPv6...) {
		prefix := netip.MustParsePrefix(row)
		first, last := prefix.Addr(), lastOf(prefix)
		for _, addr := range []netip.Addr{first.Prev(), first, last, last.Next()} {
			if addr.IsValid() {
				all = append(all, addr)
			}
		}
	}
	return all
}

func TestRegistryRowsAndNeighbours(t *testing.T) {
	policy := newStrict()
	for _, addr := range boundaries() {
		want := error(nil)
		if isSpecial(addr) {
			want = egress.ErrNotPublic
		}
		if err := policy.CheckAddr(addr); !errors.Is(err, want) {
			t.Errorf("CheckAddr(%v) = %v, want %v", addr, err, want)
		}
	}
}

// TestPublicNeighbours names what must not be refused by a row that is too wide.
func TestPublicNeighbours(t *testing.T) {
	policy := newStrict()
	for _, text := range []string{
		"1.0.0.0", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0",
		"126.255.255.255", "128.0.0.0", "168.63.129.15", "168.63.129.17",
		"169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0",
		"191.255.255.255", "192.0.1.0", "192.0.1.255", "192.0.3.0", "192.31.195.255",
		"192.31.197.0", "192.52.192.255", "192.52.194.0", "192.88.98.255", "192.88.100.0",
		"192.167.255.255", "192.169.0.0", "192.175.47.255", "192.175.49.0",
		"198.17.255.255", "198.20.0.0", "198.51.99.255", "198.51.101.0",
		"203.0.112.255", "203.0.114.0", "223.255.255.255",
		"2000::", "2000:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "2001:200::",
		"2001:db7:ffff:ffff:ffff:ffff:ffff:ffff", "2001:db9::", "2003::",
		"2620:4f:7fff:ffff:ffff:ffff:ffff:ffff", "2620:4f:8001::",
		"3ffd:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "3fff:1000::",
		"3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
	} {
		if err := policy.CheckAddr(netip.MustParseAddr(text)); err != nil {
			t.Errorf("CheckAddr(%s) = %v", text, err)
		}
	}
}
