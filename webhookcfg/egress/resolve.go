package egress

import (
	"context"
	"errors"
	"net"
	"net/netip"
)

// maxAttempts bounds how many addresses of one name are tried, since its owner
// can publish any number of addresses, and of anybody.
const maxAttempts = 8

// resolve returns one to maxAttempts addresses.
func (d dialer) resolve(ctx context.Context, to endpoint) ([]netip.Addr, error) {
	if to.addr.IsValid() {
		return []netip.Addr{to.addr}, nil
	}
	addrs, err := d.policy.lookUp(ctx, to.host)
	if err != nil {
		return nil, err
	}
	if d.allAnswers {
		for _, addr := range addrs {
			if err := d.policy.CheckAddr(addr); err != nil {
				return nil, err
			}
		}
	}
	addrs = interleave(addrs)
	return addrs[:min(len(addrs), maxAttempts)], nil
}

var errNoAddress = errors.New("egress: the name has no address")

func (p *Policy) lookUp(ctx context.Context, host string) ([]netip.Addr, error) {
	resolver := p.Resolver
	if resolver == nil {
		resolver = net.DefaultResolver
	}
	addrs, err := resolver.LookupNetIP(ctx, "ip", host)
	if err == nil && len(addrs) == 0 {
		err = errNoAddress
	}
	return addrs, err
}

// interleave alternates between the address families, beginning with that of the
// first address, so that a broken family costs one attempt (RFC 8305 section 4).
func interleave(addrs []netip.Addr) []netip.Addr {
	var families [2][]netip.Addr
	for _, addr := range addrs {
		addr = addr.Unmap()
		other := 0
		if addr.Is4() != addrs[0].Unmap().Is4() {
			other = 1
		}
		families[other] = append(families[other], addr)
	}
	mixed := make([]netip.Addr, 0, len(addrs))
	for i := range addrs {
		for _, family := range families {
			if i < len(family) {
				mixed = append(mixed, family[i])
			}
		}
	}
	return mixed
}
