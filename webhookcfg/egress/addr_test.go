package egress_test

import (
	"errors"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/webhookcfg/egress"
)

func prefixes(texts ...string) []netip.Prefix {
	var all []netip.Prefix
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

func TestCheckAddr(t *testing.T) {
	const public, zone, listed = egress.ErrNotPublic, egress.ErrZone, egress.ErrAddressDenied
	internal := &egress.Policy{
		LocalAddrs:    noAddresses,
		AllowPrefixes: prefixes("10.1.0.0/16", "fd00:1::/32"),
		DenyPrefixes:  prefixes("10.1.2.0/24", "93.184.216.0/24", "2606:2800::/32"),
	}
	nat64 := &egress.Policy{
		LocalAddrs:    noAddresses,
		AllowNAT64:    true,
		AllowPrefixes: prefixes("10.1.0.0/16"),
		DenyPrefixes:  prefixes("93.184.216.0/24", "64:ff9b::101:100/120"),
	}
	tests := []struct {
		name   string
		policy *egress.Policy
		addr   string
		want   egress.PolicyError
	}{
		{"public", newStrict(), "93.184.216.34", 0},
		{"public, IPv6", newStrict(), "2606:2800:220:1::1", 0},
		{"mapped public", newStrict(), "::ffff:93.184.216.34", 0},
		{"mapped private", newStrict(), "::ffff:10.0.0.1", public},
		{"zone", newStrict(), "fe80::1%eth0", zone},
		{"zone on a public address", newStrict(), "2606:2800:220:1::1%eth0", zone},
		{"zone on a mapped address", newStrict(), "::ffff:93.184.216.34%eth0", zone},

		{"allowed prefix", internal, "10.1.0.1", 0},
		{"allowed prefix, mapped", internal, "::ffff:10.1.0.1", 0},
		{"allowed prefix, IPv6", internal, "fd00:1::1", 0},
		{"next to the allowed prefix", internal, "10.2.0.1", public},
		{"next to the allowed prefix, IPv6", internal, "fd00:2::1", public},
		{"zone in an allowed prefix", internal, "fd00:1::1%eth0", zone},
		{"denied inside allowed", internal, "10.1.2.3", listed},
		{"denied inside allowed, mapped", internal, "::ffff:10.1.2.3", listed},
		{"denied public", internal, "93.184.216.34", listed},
		{"denied public, IPv6", internal, "2606:2800:220:1::1", listed},
		{"other public address", internal, "8.8.8.8", 0},

		{"NAT64 without the option", newStrict(), "64:ff9b::8.8.8.8", public},
		{"NAT64", nat64, "64:ff9b::8.8.8.8", 0},
		{"NAT64 of loopback", nat64, "64:ff9b::127.0.0.1", public},
		{"NAT64 of private", nat64, "64:ff9b::10.0.0.1", public},
		{"NAT64 of allowed", nat64, "64:ff9b::10.1.0.1", 0},
		{"NAT64 of denied", nat64, "64:ff9b::93.184.216.34", listed},
		{"NAT64 denied as such", nat64, "64:ff9b::1.1.1.1", listed},
		{"NAT64 of local use", nat64, "64:ff9b:1::8.8.8.8", public},
		{"next to NAT64", nat64, "64:ff9b:0:0:0:1:808:808", public},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			checkAddr(t, test.policy, netip.MustParseAddr(test.addr), test.want)
		})
	}
	t.Run("invalid", func(t *testing.T) {
		checkAddr(t, newStrict(), netip.Addr{}, public)
	})
}

// checkAddr checks that CheckAddr returns the given error, or nil for 0.
func checkAddr(t *testing.T, policy *egress.Policy, addr netip.Addr, rule egress.PolicyError) {
	t.Helper()
	var want error
	if rule != 0 {
		want = rule
	}
	if err := policy.CheckAddr(addr); !errors.Is(err, want) {
		t.Errorf("CheckAddr(%v) = %v, want %v", addr, err, want)
	}
}

func TestLocalAddrsAreRefused(t *testing.T) {
	local := parseAddrs("93.184.216.34", "::ffff:93.184.216.35", "2606:2800:220:1::1%eth0")
	policy := &egress.Policy{
		LocalAddrs:    func() ([]netip.Addr, error) { return local, nil },
		AllowPrefixes: prefixes("2606:2800:220:2::/64"),
		AllowNAT64:    true,
	}
	const refused = egress.ErrAddressDenied
	for text, want := range map[string]egress.PolicyError{
		"93.184.216.34":          refused,
		"93.184.216.35":          refused,
		"93.184.216.36":          0,
		"::ffff:93.184.216.34":   refused,
		"64:ff9b::93.184.216.34": refused,
		"2606:2800:220:1::1":     refused,
		"2606:2800:220:1::2":     0,
	} {
		checkAddr(t, policy, netip.MustParseAddr(text), want)
	}
	if err := policy.Check("https://93.184.216.34/"); !errors.Is(err, refused) {
		t.Errorf("Check of a local address = %v", err)
	}
}

func TestLocalAddrCanBeAllowed(t *testing.T) {
	policy := &egress.Policy{
		LocalAddrs:    func() ([]netip.Addr, error) { return parseAddrs(publicAddr), nil },
		AllowPrefixes: prefixes(publicAddr + "/32"),
	}
	checkAddr(t, policy, netip.MustParseAddr(publicAddr), 0)
}

func TestLocalAddrsAreCached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		local, reads := publicAddr, 0
		policy := &egress.Policy{LocalAddrs: func() ([]netip.Addr, error) {
			reads++
			return parseAddrs(local), nil
		}}
		addr, other := netip.MustParseAddr(publicAddr), netip.MustParseAddr("8.8.8.8")
		for range 3 {
			checkAddr(t, policy, addr, egress.ErrAddressDenied)
			checkAddr(t, policy, other, 0)
		}
		local = "8.8.8.8"
		time.Sleep(10*time.Second - time.Nanosecond)
		checkAddr(t, policy, addr, egress.ErrAddressDenied)
		if reads != 1 {
			t.Errorf("%d reads in ten seconds", reads)
		}
		time.Sleep(time.Nanosecond)
		checkAddr(t, policy, addr, 0)
		checkAddr(t, policy, other, egress.ErrAddressDenied)
		if reads != 2 {
			t.Errorf("%d reads after ten seconds", reads)
		}
	})
}

func TestUnknownLocalAddrsRefuse(t *testing.T) {
	broken := true
	policy := &egress.Policy{LocalAddrs: func() ([]netip.Addr, error) {
		if broken {
			return nil, errors.New("no netlink")
		}
		return nil, nil
	}}
	addr := netip.MustParseAddr(publicAddr)
	checkAddr(t, policy, addr, egress.ErrAddressDenied)
	broken = false
	checkAddr(t, policy, addr, 0)
}

func TestInvalidPolicies(t *testing.T) {
	mapped := netip.PrefixFrom(netip.MustParseAddr("::ffff:10.0.0.0"), 104)
	for name, bad := range map[string]netip.Prefix{"invalid": {}, "mapped": mapped} {
		t.Run(name, func(t *testing.T) {
			denying := &egress.Policy{LocalAddrs: noAddresses, DenyPrefixes: []netip.Prefix{bad}}
			allowing := &egress.Policy{LocalAddrs: noAddresses, AllowPrefixes: []netip.Prefix{bad}}
			checkAddr(t, denying, netip.MustParseAddr(publicAddr), egress.ErrAddressDenied)
			checkAddr(t, allowing, netip.MustParseAddr("10.0.0.1"), egress.ErrNotPublic)
			for _, policy := range []*egress.Policy{denying, allowing} {
				refusedByConstructors(t, policy)
			}
		})
	}
	t.Run("port 0", func(t *testing.T) {
		refusedByConstructors(t, &egress.Policy{Ports: []uint16{443, 0}})
	})
}

func refusedByConstructors(t *testing.T, policy *egress.Policy) {
	t.Helper()
	if policy.Validate() == nil {
		t.Error("Validate() = nil")
	}
	if _, err := policy.Prober(nil); err == nil {
		t.Error("Prober() gives no error")
	}
	if _, err := policy.Transport(); err == nil {
		t.Error("Transport() gives no error")
	}
	if _, err := policy.Client(); err == nil {
		t.Error("Client() gives no error")
	}
}

// registryIPv4 and registryIPv6 are all entries of the IANA special-purpose address
// registries (IPv6 edition of 2025-10-09), including those within other entries and
// those marked as globally reachable, followed by other ranges that are not public
// unicast. They are written independently of the tables of the package.
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

// isSpecial is the model: it reports whether an entry contains addr.
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

// boundaries returns the first and last address of every entry and their neighbours
// outside it.
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

func TestRegistryEntriesAndNeighbours(t *testing.T) {
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

// TestPublicNeighbours lists addresses that an entry that is too wide would refuse.
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
