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
// The zero value is the strict default: https, public addresses, any port.
//
// [Policy.Prober], [Policy.Transport] and [Policy.Client] apply a [Policy.Clone]: later
// changes do not affect what they return. The other methods apply the policy as it is.
// They are safe for concurrent use, but a Policy must not be modified while one of them
// runs, nor copied in another way than by Clone.
type Policy struct {
	// AllowHTTP allows http URLs in addition to https.
	AllowHTTP bool

	// AllowPrefixes are addresses that may be called although they are not public,
	// such as those of an internal network. They take precedence over the
	// special-purpose registry and LocalAddrs. If a loopback address is allowed, so
	// are localhost and the names under it. A prefix must not be wider than any in the
	// registries, which are 240.0.0.0/4 and fc00::/7: 0.0.0.0/0 would void the policy.
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
	// unless AllowPrefixes contains them. A policy, and each clone of it, calls it when
	// an otherwise allowed address is checked and the last list is older than ten
	// seconds, never twice at the same time. It must return when its context ends, after
	// three seconds. While it takes long, or if it fails, the last list is used until it
	// is a minute old; then the address cannot be checked and is not called, see
	// [ErrUnavailable]. If nil, the addresses of the network interfaces are used.
	LocalAddrs func(ctx context.Context) ([]netip.Addr, error)

	// Resolver looks up host names. If nil, [net.DefaultResolver] is used.
	Resolver Resolver

	// Dial opens a connection to address, a literal address and port that has been
	// checked. It must connect to nothing else, and return when its context ends: until
	// then, it keeps the slot of its probe. If nil, a [net.Dialer] is used that checks
	// each address again as it connects.
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

// Validate returns an error if a prefix is invalid or IPv4-mapped, if one of
// AllowPrefixes is too wide, or if a port is 0. [Policy.Prober], [Policy.Transport] and
// [Policy.Client] call it. A policy that is used although it is invalid allows nothing
// more than a valid one: such a prefix in DenyPrefixes matches every address, one in
// AllowPrefixes none.
func (p *Policy) Validate() error {
	for _, prefix := range slices.Concat(p.AllowPrefixes, p.DenyPrefixes) {
		if !isUsable(prefix) {
			return fmt.Errorf("egress: prefix %v is invalid or IPv4-mapped", prefix)
		}
	}
	if i := slices.IndexFunc(p.AllowPrefixes, isTooWide); i >= 0 {
		return fmt.Errorf("egress: prefix %v in Policy.AllowPrefixes is wider than any special-purpose range", p.AllowPrefixes[i])
	}
	if slices.Contains(p.Ports, 0) {
		return fmt.Errorf("egress: port 0 in Policy.Ports")
	}
	return nil
}

// Clone returns a copy that later changes of p do not affect. It shares the values of
// LocalAddrs, Resolver and Dial.
func (p *Policy) Clone() *Policy {
	clone := &Policy{
		AllowHTTP:     p.AllowHTTP,
		AllowPrefixes: slices.Clone(p.AllowPrefixes),
		DenyPrefixes:  slices.Clone(p.DenyPrefixes),
		Ports:         slices.Clone(p.Ports),
		AllowNAT64:    p.AllowNAT64,
		LocalAddrs:    p.LocalAddrs,
		Resolver:      p.Resolver,
		Dial:          p.Dial,
	}
	if p.RootCAs != nil {
		clone.RootCAs = p.RootCAs.Clone()
	}
	return clone
}

// Check returns nil if the text of rawURL complies with the policy, and a [PolicyError] if
// it does not. Names are not looked up; a literal address is checked as by
// [Policy.CheckAddr]. A URL that passes must be stored and called byte for byte as it is.
func (p *Policy) Check(rawURL string) error {
	return p.CheckContext(context.Background(), rawURL)
}

// CheckContext is [Policy.Check], but waits for LocalAddrs until ctx ends at most.
func (p *Policy) CheckContext(ctx context.Context, rawURL string) error {
	_, err := p.parse(ctx, rawURL)
	return err
}
