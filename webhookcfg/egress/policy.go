package egress

import (
	"context"
	"crypto/x509"
	"fmt"
	"net"
	"net/netip"
	"slices"
)

// Policy says which URLs and addresses you call. The zero value is the strict default: https,
// public addresses, any port. [Policy.Check] applies it to a URL that a client submits,
// [Prober.Probe] to a probe, and [Policy.Transport] to every call.
//
// [Policy.Prober], [Policy.Transport] and [Policy.Client] keep a [Policy.Clone], so you can
// change the Policy afterwards without effect on them. The other methods use the policy
// itself. They are safe for concurrent use, but don't change the policy while one of them
// runs. To copy a policy, call Clone.
//
// A policy isn't secret. By submitting URLs with literal addresses, clients can find out its
// prefixes and ports.
type Policy struct {
	// AllowHTTP allows http URLs in addition to https.
	AllowHTTP bool

	// AllowPrefixes are addresses that may be called although they aren't public, such as the
	// receivers in your own network. They override the special-purpose registry and
	// LocalAddrs. If you allow a loopback address, localhost and the names under it are
	// allowed too. A prefix can't be wider than the widest in the registries, 240.0.0.0/4 and
	// fc00::/7. Otherwise 0.0.0.0/0 would disable the policy.
	AllowPrefixes []netip.Prefix

	// DenyPrefixes are addresses that must not be called, even if AllowPrefixes has them.
	//
	// List public addresses that lead into your network, such as a load balancer's. If your
	// network has a NAT64 prefix of its own (RFC 6052 section 2.2), list that too: an address
	// in it looks public, but leads to the IPv4 address that it embeds, even a private one. A
	// transparent proxy opens connections of its own, and the policy can't see these.
	DenyPrefixes []netip.Prefix

	// Ports are the only ports that may be called. If empty, every port is allowed.
	Ports []uint16

	// AllowNAT64 treats an address in 64:ff9b::/96 (RFC 6052) as the IPv4 address in its last
	// 32 bits. Set it on IPv6-only machines behind DNS64 (RFC 6147). By default, such an
	// address isn't public.
	AllowNAT64 bool

	// LocalAddrs returns the addresses of this host. They are refused even if they're public,
	// because the kernel delivers packets to them past any firewall. Only AllowPrefixes can
	// override that. If nil, the addresses of the network interfaces are used.
	//
	// Set it where your process can't list these, because no public address is called then. Listing
	// needs a socket of AF_NETLINK on Linux, which a sandbox such as RestrictAddressFamilies of
	// systemd must allow, and you may not be able to change the sandbox. The list also lacks
	// addresses that only a local route directs to this host, such as a range bound with AnyIP.
	// Return these here if they change, or else add them to DenyPrefixes.
	//
	// The policy calls it to check an address that it would otherwise allow, if the last list
	// is older than ten seconds. It doesn't call it twice at the same time, but each clone of
	// the policy calls it too. LocalAddrs must return when its context ends, after three
	// seconds.
	//
	// While LocalAddrs is slow or fails, the last list is used until it's a minute old. From
	// then on, only addresses in AllowPrefixes are called, and other public ones get an error
	// that wraps [ErrUnavailable]. So a new address of this host is refused after ten
	// seconds at most, or after a minute if LocalAddrs is slow.
	LocalAddrs func(ctx context.Context) ([]netip.Addr, error)

	// Resolver looks up host names. If nil, [net.DefaultResolver] is used, which also appends the
	// search domains of your system's configuration. Kubernetes has some, and tries them first. If a
	// name in one of them can lead to a server that your clients shouldn't reach, leave them out: run the
	// process without search domains (in Kubernetes, with dnsPolicy: None and a dnsConfig without
	// searches), or pass a Resolver of your own that appends a dot to each name. The option ndots:1 isn't
	// enough, since a name that isn't found is then still looked up in the search domains.
	Resolver Resolver

	// Dial opens a connection to address, a literal address and port that was checked. It
	// must connect to nothing else, and return when its context ends, because the call waits
	// for it, and a probe keeps its slot until then. It must be safe for concurrent use. If nil, a [net.Dialer] is used that checks each address
	// again as it connects.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	// RootCAs are the certificate authorities that you trust for https. If nil, the ones of
	// the system are used. Certificates are always verified.
	RootCAs *x509.CertPool

	local localAddrs
}

// Resolver looks up the addresses of a host name. [net.Resolver] implements it.
type Resolver interface {
	// LookupNetIP returns the addresses of host; network is "ip".
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Development returns the policy for a developer's machine: the strict one, but http and the
// loopback addresses 127.0.0.0/8 and ::1 are allowed.
func Development() *Policy {
	return &Policy{
		AllowHTTP: true,
		AllowPrefixes: []netip.Prefix{
			netip.MustParsePrefix("127.0.0.0/8"),
			netip.MustParsePrefix("::1/128"),
		},
	}
}

// Validate returns an error if a prefix is invalid or IPv4-mapped, if it has bits set beyond its
// length, as 10.1.2.3/8 does, if one of AllowPrefixes is too wide, or if a port is 0.
// [Policy.Prober], [Policy.Transport] and [Policy.Client] call it. If you use an invalid policy anyway, it allows no more than a valid one: such a prefix
// in DenyPrefixes matches every address, and one in AllowPrefixes none.
func (p *Policy) Validate() error {
	for _, prefix := range slices.Concat(p.AllowPrefixes, p.DenyPrefixes) {
		switch addr := prefix.Addr(); {
		case !prefix.IsValid() || addr.Is4In6():
			return fmt.Errorf("egress: prefix %v is invalid, or IPv4-mapped (write that as IPv4)", prefix)
		case !isUsable(prefix):
			return fmt.Errorf("egress: prefix %v has bits set beyond its length: write %v, or %v/%d for the one address", prefix, prefix.Masked(), addr, addr.BitLen())
		}
	}
	if i := slices.IndexFunc(p.AllowPrefixes, isTooWide); i >= 0 {
		return fmt.Errorf("egress: prefix %v in Policy.AllowPrefixes is too wide: want /4 or longer for IPv4, /7 or longer for IPv6", p.AllowPrefixes[i])
	}
	if slices.Contains(p.Ports, 0) {
		return fmt.Errorf("egress: port 0 in Policy.Ports")
	}
	return nil
}

// Clone returns a copy, which later changes of p don't affect. It shares the values of
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

// Check returns nil if the policy allows the text of rawURL, and a [PolicyError] if it
// doesn't. It checks a literal address as [Policy.CheckAddr] does, and looks up no names.
// Store and call the URL byte for byte as you checked it.
//
//	whole URL  absolute, 1 to 2048 bytes of printable ASCII, without spaces, backslashes,
//	           curly brackets, a fragment, a user name or a password
//	scheme     https, or http with Policy.AllowHTTP
//	host       an IPv4 address of four decimal numbers without leading zeros, an IPv6
//	           address in brackets, or a name
//	name       at most 253 bytes: labels of 1 to 63 letters, digits, hyphens and
//	           underscores, with no hyphen at either end; it doesn't end in a dot, a number
//	           or "localhost", and a single label doesn't start with a digit
//	port       a number from 1 to 65535 without leading zeros, one of Policy.Ports
//	path       what RFC 3986 allows, so none of | " < > ^ ` [ ], and two hexadecimal digits
//	           after each percent sign
//	query      as the path, but square brackets are allowed, since they're usual there
//
// Two URLs with a comma, a semicolon or a blank between them are refused, unless the second one is
// in the query.
//
// Internationalised names must be A-labels (RFC 5890). If you allow a loopback address,
// localhost is allowed too.
func (p *Policy) Check(rawURL string) error {
	return p.CheckContext(context.Background(), rawURL)
}

// CheckContext is [Policy.Check], but stops waiting for LocalAddrs when ctx ends.
func (p *Policy) CheckContext(ctx context.Context, rawURL string) error {
	_, err := p.parse(ctx, rawURL)
	return err
}

// CheckStored is [Policy.CheckContext] for a URL that you have accepted before: it leaves out the
// rules for the characters of path and query, and the one about two URLs. You could have accepted
// it when there were no such rules. [Policy.Transport] calls it, too.
func (p *Policy) CheckStored(ctx context.Context, rawURL string) error {
	_, err := p.parseStored(ctx, rawURL)
	return err
}

func (p *Policy) checkPort(port uint16) error {
	if len(p.Ports) > 0 && !slices.Contains(p.Ports, port) {
		return errPortNotAllowed
	}
	return nil
}
