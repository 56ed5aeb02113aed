package egress

import (
	"context"
	"crypto/x509"
	"fmt"
	"net"
	"net/netip"
	"slices"
)

// Policy specifies which URLs and addresses may be called. The same rules apply in
// [Policy.Check], when a URL is submitted, in [Prober.Probe], and in
// [Policy.Transport], on every call.
//
// The zero value is the strict default: https, public addresses, any port. A Policy
// must not be modified or copied after its first use; it is then safe for concurrent
// use.
type Policy struct {
	// AllowHTTP allows http URLs in addition to https.
	AllowHTTP bool

	// AllowPrefixes are addresses that may be called although they are not public,
	// such as those of an internal network. They take precedence over the
	// special-purpose registry and LocalAddrs. If a loopback address is allowed, so
	// are localhost and the names under it.
	AllowPrefixes []netip.Prefix

	// DenyPrefixes are addresses that must not be called, such as public addresses
	// that lead into the host's network. They take precedence over AllowPrefixes.
	DenyPrefixes []netip.Prefix

	// Ports are the only ports that may be called. If empty, every port is allowed.
	Ports []uint16

	// AllowNAT64 treats an address in 64:ff9b::/96 (RFC 6052) as the IPv4 address
	// in its last 32 bits, for IPv6-only hosts behind DNS64 (RFC 6147). Otherwise
	// such an address is not public.
	AllowNAT64 bool

	// LocalAddrs returns the addresses of this host. They are refused even if they
	// are public, because the kernel delivers packets to them past any firewall,
	// unless AllowPrefixes contains them. It is called when an otherwise allowed
	// address is checked, at most once in ten seconds; if it fails, the address is
	// refused. If nil, the addresses of the network interfaces are used.
	LocalAddrs func() ([]netip.Addr, error)

	// Resolver looks up host names. If nil, [net.DefaultResolver] is used.
	Resolver Resolver

	// Dial opens a connection to address, a literal address and port that has been
	// checked. It must connect to nothing else, and return when its context ends. If
	// nil, a [net.Dialer] is used that checks each address again as it connects.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	// RootCAs are the certificate authorities that are trusted for https. If nil,
	// those of the system are used. Certificates are always verified.
	RootCAs *x509.CertPool

	local localAddrs
}

// Resolver looks up the addresses of a host name. [net.Resolver] is one.
type Resolver interface {
	// LookupNetIP returns the addresses of host; network is "ip".
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Development returns the policy for a developer's machine: the strict one, but
// with http and the loopback addresses 127.0.0.0/8 and ::1 allowed.
func Development() *Policy {
	return &Policy{
		AllowHTTP: true,
		AllowPrefixes: []netip.Prefix{
			netip.MustParsePrefix("127.0.0.0/8"),
			netip.MustParsePrefix("::1/128"),
		},
	}
}

// Validate returns an error if a prefix is invalid or IPv4-mapped, or a port is 0.
// [Policy.Prober], [Policy.Transport] and [Policy.Client] call it. A policy that is
// used although it is invalid allows nothing more than a valid one: an unusable prefix
// in DenyPrefixes matches every address, one in AllowPrefixes none.
func (p *Policy) Validate() error {
	for _, prefix := range slices.Concat(p.AllowPrefixes, p.DenyPrefixes) {
		if !isUsable(prefix) {
			return fmt.Errorf("egress: prefix %v is invalid or IPv4-mapped", prefix)
		}
	}
	if slices.Contains(p.Ports, 0) {
		return fmt.Errorf("egress: port 0 in Policy.Ports")
	}
	return nil
}

// Check returns nil if the text of rawURL complies with the policy, and a
// [PolicyError] otherwise. Names are not looked up. A URL that passes must be stored
// and called byte for byte as it is.
func (p *Policy) Check(rawURL string) error {
	_, err := p.parse(rawURL)
	return err
}
