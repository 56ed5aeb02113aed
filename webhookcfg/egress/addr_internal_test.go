package egress

import (
	"context"
	"crypto/x509"
	"net"
	"net/netip"
	"reflect"
	"slices"
	"testing"
)

// TestInterfaceAddrsAreLocal looks for the loopback address, which every machine has. The
// exported API refuses loopback for another reason, so it can't show this.
func TestInterfaceAddrsAreLocal(t *testing.T) {
	local, err := new(localAddrs).list(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if !local.addrs[loopbackIPv4] && !local.addrs[loopbackIPv6] {
		t.Errorf("no loopback address among %v", local.addrs)
	}
}

// SpecialPrefixes returns the table of special-purpose ranges.
func SpecialPrefixes() []netip.Prefix {
	var all []netip.Prefix
	for _, b := range slices.Concat(specialIPv4, specialIPv6) {
		all = append(all, b.prefix)
	}
	return all
}

// TestSpecialPrefixesAreSorted checks the precondition of the binary search.
func TestSpecialPrefixesAreSorted(t *testing.T) {
	for _, blocks := range [][]specialPrefix{specialIPv4, specialIPv6} {
		for i, b := range blocks {
			if b.prefix != b.prefix.Masked() {
				t.Errorf("%s: %v has bits beyond the prefix", b.name, b.prefix)
			}
			if i > 0 && (blocks[i-1].prefix.Overlaps(b.prefix) || !blocks[i-1].prefix.Addr().Less(b.prefix.Addr())) {
				t.Errorf("%v (%s) is not sorted after %v", b.prefix, b.name, blocks[i-1].prefix)
			}
		}
	}
	for _, b := range specialIPv6 {
		if !globalIPv6.Overlaps(b.prefix) {
			t.Errorf("%v (%s) is outside the global unicast space", b.prefix, b.name)
		}
	}
}

// TestCloneHasEveryField: if the copy lacked a field, probers and transports would ignore
// that rule.
func TestCloneHasEveryField(t *testing.T) {
	clone := (&Policy{
		AllowHTTP:     true,
		AllowPrefixes: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
		DenyPrefixes:  []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")},
		Ports:         []uint16{443},
		AllowNAT64:    true,
		LocalAddrs:    interfaceAddrs,
		Resolver:      net.DefaultResolver,
		Dial:          func(context.Context, string, string) (net.Conn, error) { return nil, nil },
		RootCAs:       x509.NewCertPool(),
	}).Clone()
	value := reflect.ValueOf(clone).Elem()
	for i := range value.NumField() {
		if field := value.Type().Field(i); field.IsExported() && value.Field(i).IsZero() {
			t.Errorf("the copy has no %s", field.Name)
		}
	}
}
