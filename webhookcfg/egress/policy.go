package egress

import (
	"context"
	"crypto/x509"
	"fmt"
	"net"
	"net/netip"
	"slices"
)

// Policy says which URLs and addresses may be called. One policy judges in three
// places, with the same predicate: [Policy.Check] when a URL is offered,
// [Prober.Probe] when it is tried, and [Policy.Transport] whenever it is called.
//
// The zero value is the strict default: https only, public addresses only, every
// port. A policy must not be changed or copied after its first use; then it is
// safe for concurrent use.
type Policy struct {
	// AllowHTTP allows the scheme http beside https.
	AllowHTTP bool

	// AllowPrefixes are addresses that may be called although they are not public,
	// such as the prefix of an internal network. They win over the special-purpose
	// registry and over LocalAddrs. Where a loopback address is allowed, so are
	// the names localhost and those under it.
	AllowPrefixes []netip.Prefix

	// DenyPrefixes are addresses that must not be called. They win over
	// AllowPrefixes. Useful for public addresses that lead into the own network.
	DenyPrefixes []netip.Prefix

	// Ports are the only ports that may be called; empty: every port.
	Ports []uint16

	// AllowNAT64 judges an address in 64:ff9b::/96 (RFC 6052) by the IPv4 address
	// in its last 32 bits. Without it such an address is not public. Meant for
	// hosts without IPv4, whose resolver makes these addresses up.
	AllowNAT64 bool

	// LocalAddrs returns the addresses of this host, which must not be called
	// even if they are public: the kernel delivers them past any firewall. It is
	// called when an otherwise allowed address is judged, at most once in ten
	// seconds; if it fails, the address is refused. nil: those of the network
	// interfaces. To call an own address, put it into AllowPrefixes.
	LocalAddrs func() ([]netip.Addr, error)

	// Resolver looks up host names; nil: [net.DefaultResolver].
	Resolver Resolver

	// Dial opens a connection to address, a literal address and port that was
	// judged, and must connect to nothing else; nil: a [net.Dialer] that has each
	// address judged as it connects.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	// RootCAs are the authorities that may sign the certificate of an https
	// server; nil: those of the system. Certificates are always verified.
	RootCAs *x509.CertPool

	local localAddrs
}

// Resolver looks up the addresses of a host name. [net.Resolver] is one.
type Resolver interface {
	// LookupNetIP returns the addresses of host; network is "ip".
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Development returns the policy for a developer's own machine: the strict one,
// but with http and the loopback addresses 127.0.0.0/8 and ::1.
func Development() *Policy {
	return &Policy{
		AllowHTTP: true,
		AllowPrefixes: []netip.Prefix{
			netip.MustParsePrefix("127.0.0.0/8"),
			netip.MustParsePrefix("::1/128"),
		},
	}
}

// Validate returns an error if the policy says something that cannot be meant: a
// prefix that is invalid or IPv4-mapped, or the port 0. [Policy.Prober] and
// [Policy.Transport] call it. Used nevertheless, such a policy errs on the safe
// side.
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

// Check returns nil if rawURL may be called, as far as its text tells: names are
// not looked up. Otherwise the error is a [PolicyError]. A URL that passed is to be kept
// and called exactly as it was given.
func (p *Policy) Check(rawURL string) error {
	_, err := p.parse(rawURL)
	return err
}
