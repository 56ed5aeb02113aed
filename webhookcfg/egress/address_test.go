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
		{"beside the allowed prefix", internal, "10.2.0.1", public},
		{"beside the allowed prefix, IPv6", internal, "fd00:2::1", public},
		{"zone in an allowed prefix", internal, "fd00:1::1%eth0", zone},
		{"denied inside allowed", internal, "10.1.2.3", listed},
		{"denied inside allowed, mapped", internal, "::ffff:10.1.2.3", listed},
		{"denied public", internal, "93.184.216.34", listed},
		{"denied public, IPv6", internal, "2606:2800:220:1::1", listed},
		{"public all the same", internal, "8.8.8.8", 0},

		{"NAT64 without the option", newStrict(), "64:ff9b::8.8.8.8", public},
		{"NAT64", nat64, "64:ff9b::8.8.8.8", 0},
		{"NAT64 of loopback", nat64, "64:ff9b::127.0.0.1", public},
		{"NAT64 of private", nat64, "64:ff9b::10.0.0.1", public},
		{"NAT64 of allowed", nat64, "64:ff9b::10.1.0.1", 0},
		{"NAT64 of denied", nat64, "64:ff9b::93.184.216.34", listed},
		{"NAT64 denied as such", nat64, "64:ff9b::1.1.1.1", listed},
		{"NAT64 of local use", nat64, "64:ff9b:1::8.8.8.8", public},
		{"beside NAT64", nat64, "64:ff9b:0:0:0:1:808:808", public},
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

// checkAddr wants a rule broken, or none for 0.
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

func TestOwnAddressesAreRefused(t *testing.T) {
	own := parseAddrs("93.184.216.34", "::ffff:93.184.216.35", "2606:2800:220:1::1%eth0")
	policy := &egress.Policy{
		LocalAddrs:    func() ([]netip.Addr, error) { return own, nil },
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
		t.Errorf("Check of an own address = %v", err)
	}
}

func TestOwnAddressCanBeAllowed(t *testing.T) {
	policy := &egress.Policy{
		LocalAddrs:    func() ([]netip.Addr, error) { return parseAddrs(publicAddr), nil },
		AllowPrefixes: prefixes(publicAddr + "/32"),
	}
	checkAddr(t, policy, netip.MustParseAddr(publicAddr), 0)
}

func TestOwnAddressesAreReadOnceInTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own, reads := publicAddr, 0
		policy := &egress.Policy{LocalAddrs: func() ([]netip.Addr, error) {
			reads++
			return parseAddrs(own), nil
		}}
		addr, other := netip.MustParseAddr(publicAddr), netip.MustParseAddr("8.8.8.8")
		for range 3 {
			checkAddr(t, policy, addr, egress.ErrAddressDenied)
			checkAddr(t, policy, other, 0)
		}
		own = "8.8.8.8"
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

func TestUnknownOwnAddressesRefuse(t *testing.T) {
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

func TestPrefixesThatCannotBeMeant(t *testing.T) {
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
