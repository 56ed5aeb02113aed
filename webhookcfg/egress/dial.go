package egress

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"time"

	"example.com/go-webhookcfg/internal/singleflight"
)

// dialTimeout bounds the lookup of a name and the attempts to connect.
const dialTimeout = 10 * time.Second

// DialContext connects to address, a host and a port, if the policy allows it. The network
// must be "tcp". If the host is a name, each of its addresses is checked just before the
// attempt to connect to it. DialContext tries at most eight of them, within ten seconds
// altogether. IPv6 and IPv4 addresses take turns, and an address that hasn't responded after 300
// milliseconds doesn't keep the next one waiting (RFC 8305). So there can be up to eight attempts
// at the same time. All of them have ended, and at most one connection is open, when DialContext
// returns.
//
// Use it as the DialContext of an [http.Transport] if you need a transport of your own. Leave
// Proxy and DialTLSContext nil, and set TLSHandshakeTimeout: net/http doesn't apply the
// deadline of a request to handshakes. Your transport won't bound certificates and log lines
// as [Policy.Transport] does. It also returns 101 responses, whose bodies no deadline ends.
//
// The error is a [PolicyError], an [*UnreachableError] or the error of ctx. It wraps
// [ErrUnavailable] if an address couldn't be checked. If the Resolver, Dial or LocalAddrs of
// the policy panics, DialContext returns that as an error: net/http calls it in a goroutine
// where you couldn't recover the panic.
func (p *Policy) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return dialer{policy: p}.dial(ctx, network, address)
}

// dialer connects to destinations that a policy allows.
type dialer struct {
	policy *Policy

	// checkAll requires that the policy allows every address of a name, and not only the one
	// that we connect to.
	checkAll bool

	// tls adds a verified TLS handshake to dial.
	tls bool
}

// dial is the DialContext of an [http.Transport], or with tls its DialTLSContext.
func (d dialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	connect := func(ctx context.Context) (net.Conn, error) {
		to, err := d.policy.parseAddress(ctx, network, address)
		if err != nil {
			return nil, err
		}
		to.tls = d.tls
		return d.connect(ctx, to)
	}
	return singleflight.Call(func() (net.Conn, error) {
		if c, ok := ctx.Value(callKey{}).(*call); ok {
			return c.dial(ctx, connect)
		}
		return connect(ctx)
	})
}

// connect connects to a destination, with a verified TLS handshake if it has TLS.
func (d dialer) connect(ctx context.Context, to destination) (net.Conn, error) {
	conn, err := d.connectTCP(ctx, to)
	if err != nil || !to.tls {
		return conn, err
	}
	secured, err := d.policy.secure(ctx, conn, to.host)
	if err != nil {
		return nil, unreachable(ctx, to, ReasonTLS, err)
	}
	return secured, nil
}

func (d dialer) connectTCP(ctx context.Context, to destination) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	addrs, err := d.resolve(ctx, to)
	if err != nil {
		return nil, unreachable(ctx, to, ReasonDNS, err)
	}
	conn, err := d.policy.dialAddrs(ctx, addrs, to.port)
	if err != nil {
		return nil, unreachable(ctx, to, ReasonConnection, err)
	}
	return conn, nil
}

// parseAddress applies the rules for hosts and ports to the arguments of a dialer. Otherwise,
// an empty host would mean this machine.
func (p *Policy) parseAddress(ctx context.Context, network, address string) (destination, error) {
	if network != "tcp" {
		return destination{}, net.UnknownNetworkError(network)
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return destination{}, errInvalidPort
	}
	number, err := parsePort(":" + port)
	if err != nil {
		return destination{}, err
	}
	to, err := destination{port: number}.at(host, strings.Contains(host, ":"))
	if err == nil {
		err = p.checkDestination(ctx, to)
	}
	if err != nil {
		return destination{}, err
	}
	return to, nil
}

// attemptDelay is how long an attempt to connect has before the next address is tried beside
// it (RFC 8305 section 5).
const attemptDelay = 300 * time.Millisecond

// dialAddrs tries the addresses in their order: the next one as soon as an attempt fails, or
// takes attemptDelay or longer. It returns the first connection, or else the error of the first
// address, once every attempt has ended.
func (p *Policy) dialAddrs(ctx context.Context, addrs []netip.Addr, port uint16) (net.Conn, error) {
	deadline, _ := ctx.Deadline()
	delay := min(attemptDelay, time.Until(deadline)/time.Duration(len(addrs)))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type attempt struct {
		index int
		conn  net.Conn
		err   error
	}
	ended := make(chan attempt)
	started, running := 0, 0
	start := func() {
		index := started
		started, running = started+1, running+1
		go func() {
			conn, err := singleflight.Call(func() (net.Conn, error) {
				return p.dialAddr(ctx, netip.AddrPortFrom(addrs[index].Unmap(), port))
			})
			ended <- attempt{index, conn, err}
		}()
	}
	var conn net.Conn
	var panicked error
	errs := make([]error, len(addrs))
	for start(); running > 0; {
		var next <-chan time.Time
		if started < len(addrs) && ctx.Err() == nil {
			next = time.After(delay)
		}
		select {
		case <-next:
			start()
			continue
		case a := <-ended:
			running--
			if errs[a.index] = a.err; a.err == nil {
				if conn != nil {
					_ = a.conn.Close()
					continue
				}
				conn = a.conn
				cancel()
			}
			if _, ok := errors.AsType[*singleflight.PanicError](a.err); ok {
				panicked = a.err
				cancel()
			}
		}
		if started < len(addrs) && ctx.Err() == nil {
			start()
		}
	}
	if conn != nil {
		return conn, nil
	}
	return nil, cmp.Or(panicked, cmp.Or(errs...))
}

// dialAddr checks one literal address and connects to it.
func (p *Policy) dialAddr(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	if p.Dial == nil {
		guarded := net.Dialer{ControlContext: p.control}
		return guarded.DialContext(ctx, "tcp", to.String())
	}
	if err := p.checkAddrPort(ctx, to); err != nil {
		return nil, err
	}
	conn, err := p.Dial(ctx, "tcp", to.String())
	if err == nil && conn == nil {
		err = errNoConn
	}
	return conn, err
}

var errNoConn = errors.New("egress: Policy.Dial returned no connection")

// control checks the address of a socket that is about to connect.
func (p *Policy) control(ctx context.Context, _, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return errAddressDenied
	}
	return p.checkAddrPort(ctx, to)
}

func (p *Policy) checkAddrPort(ctx context.Context, to netip.AddrPort) error {
	if err := p.checkAddr(ctx, to.Addr()); err != nil {
		return err
	}
	return p.checkPort(to.Port())
}

// maxAddrs bounds the attempts to connect to one name. The name's owner can publish any
// number of addresses, including third parties'.
const maxAddrs = 8

// resolve returns at least one and at most maxAddrs addresses.
func (d dialer) resolve(ctx context.Context, to destination) ([]netip.Addr, error) {
	if to.addr.IsValid() {
		return []netip.Addr{to.addr}, nil
	}
	addrs, err := d.policy.lookup(ctx, to.host)
	if err != nil {
		return nil, err
	}
	if d.checkAll {
		for _, addr := range addrs {
			if err := d.policy.checkAddr(ctx, addr); err != nil {
				return nil, err
			}
		}
	}
	addrs = alternate(addrs)
	return addrs[:min(len(addrs), maxAddrs)], nil
}

// alternate returns the addresses in an order in which IPv6 and IPv4 take turns, as long as there
// are any of both. It starts with the first one's. So if one family leads nowhere, as IPv6 does
// on many networks, the other one is tried soon (RFC 8305 section 4).
func alternate(addrs []netip.Addr) []netip.Addr {
	var same, other []netip.Addr
	for _, addr := range addrs {
		if addr.Unmap().Is4() == addrs[0].Unmap().Is4() {
			same = append(same, addr)
		} else {
			other = append(other, addr)
		}
	}
	mixed := make([]netip.Addr, 0, len(addrs))
	for i := range max(len(same), len(other)) {
		mixed = append(mixed, same[min(i, len(same)):min(i+1, len(same))]...)
		mixed = append(mixed, other[min(i, len(other)):min(i+1, len(other))]...)
	}
	return mixed
}

var errNoAddress = errors.New("egress: host name without addresses")

func (p *Policy) lookup(ctx context.Context, host string) ([]netip.Addr, error) {
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
