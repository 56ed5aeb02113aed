package egress_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"testing"

	"example.com/go-webhookcfg/webhookcfg/egress"
)

var _ egress.Resolver = net.DefaultResolver

// publicAddr is an address that the strict policy allows; no test connects to it.
const publicAddr = "93.184.216.34"

// resolverFunc answers look-ups without a network.
type resolverFunc func(ctx context.Context, host string) ([]netip.Addr, error)

func (f resolverFunc) LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error) {
	if network != "ip" {
		return nil, net.UnknownNetworkError(network)
	}
	return f(ctx, host)
}

// answer is a resolver that gives every name the same addresses.
func answer(texts ...string) egress.Resolver {
	return resolverFunc(func(context.Context, string) ([]netip.Addr, error) {
		return parseAddrs(texts...), nil
	})
}

// answers is a resolver that gives one answer after another, then the last one.
func answers(each ...string) egress.Resolver {
	var mu sync.Mutex
	return resolverFunc(func(context.Context, string) ([]netip.Addr, error) {
		mu.Lock()
		defer mu.Unlock()
		text := each[0]
		if len(each) > 1 {
			each = each[1:]
		}
		return parseAddrs(text), nil
	})
}

// unknownName is a resolver that knows no name.
var unknownName = resolverFunc(func(_ context.Context, host string) ([]netip.Addr, error) {
	return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
})

func parseAddrs(texts ...string) []netip.Addr {
	var addrs []netip.Addr
	for _, text := range texts {
		addrs = append(addrs, netip.MustParseAddr(text))
	}
	return addrs
}

func noAddresses() ([]netip.Addr, error) { return nil, nil }

// errDialled is what a recorder answers.
var errDialled = errors.New("dialled")

// recorder stands in for the network: it notes what is dialled, and fails.
type recorder struct {
	mu      sync.Mutex
	dialled []string
}

func (r *recorder) Dial(_ context.Context, _, address string) (net.Conn, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dialled = append(r.dialled, address)
	return nil, errDialled
}

// take returns what was dialled since the last take.
func (r *recorder) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := r.dialled
	r.dialled = nil
	return taken
}

// redirected returns a Dial that leads every judged address to a listener.
func redirected(to net.Addr) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, to.String())
	}
}

// dialLoopback is a Dial that leaves the machine under no circumstances, also
// not when the policy is broken.
func dialLoopback(ctx context.Context, network, address string) (net.Conn, error) {
	if !netip.MustParseAddrPort(address).Addr().IsLoopback() {
		return nil, fmt.Errorf("a test leaves the machine for %s", address)
	}
	return new(net.Dialer).DialContext(ctx, network, address)
}

func newProber(tb testing.TB, policy *egress.Policy, opts *egress.ProberOptions) *egress.Prober {
	tb.Helper()
	prober, err := policy.Prober(opts)
	if err != nil {
		tb.Fatal(err)
	}
	return prober
}

func newTransport(tb testing.TB, policy *egress.Policy) *egress.Transport {
	tb.Helper()
	transport, err := policy.Transport()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(transport.CloseIdleConnections)
	return transport
}

// reasonOf returns the reason in err, or "" if there is none.
func reasonOf(err error) egress.Reason {
	var unreachable *egress.UnreachableError
	if !errors.As(err, &unreachable) {
		return ""
	}
	return unreachable.Reason
}

// lookUps notes the name that was looked up last.
type lookUps struct{ host string }

func (l *lookUps) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	l.host = host
	return parseAddrs(publicAddr), nil
}
