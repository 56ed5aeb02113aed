package egress_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// TestRebinding has a name that resolves to a public address when it is probed, and
// to loopback when it is called. The Dial of the probed policy redirects the public
// address to the listener.
func TestRebinding(t *testing.T) {
	receiver := listen(t)
	requests := receiver.serveReading(nil)
	target := receiver.at("http", "rebinding.example")
	rebinding := resolveInTurn(publicAddr, "127.0.0.1")
	probed := &egress.Policy{AllowHTTP: true, Resolver: rebinding, Dial: redirected(receiver.Addr())}
	called := &egress.Policy{AllowHTTP: true, Resolver: rebinding}

	if err := probe(t, probed, target); err != nil {
		t.Fatalf("Probe of a public address: %v", err)
	}
	<-requests
	for name, policy := range map[string]*egress.Policy{"custom Dial": probed, "default Dial": called} {
		_, err := roundTrip(t, newTransport(t, policy), target)
		if got := reasonOf(err); got != egress.ReasonDenied {
			t.Errorf("%s, RoundTrip to loopback: %v, want denied", name, err)
		}
	}
	if n := receiver.accepted.Load(); n != 1 {
		t.Errorf("%d connections, want that of the probe", n)
	}
}

func roundTrip(t *testing.T, transport http.RoundTripper, target string) (*http.Response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, target, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := transport.RoundTrip(req)
	if err == nil {
		t.Cleanup(func() { _ = resp.Body.Close() })
	}
	return resp, err
}

// TestNameOfLoopback uses the default dialer, where only the check at connect time can
// refuse the address.
func TestNameOfLoopback(t *testing.T) {
	for _, resolved := range []string{"127.0.0.1", "::ffff:127.0.0.1"} {
		receiver := listen(t)
		receiver.serve(func(net.Conn) {})
		_, port, _ := net.SplitHostPort(receiver.Addr().String())
		policy := newStrict()
		policy.Resolver = resolveTo(resolved)
		conn, err := policy.DialContext(t.Context(), "tcp", net.JoinHostPort(receiverName, port))
		if reasonOf(err) != egress.ReasonDenied || conn != nil {
			t.Errorf("DialContext to %s = %v, %v", resolved, conn, err)
		}
		if receiver.accepted.Load() != 0 {
			t.Error("the loopback listener accepted a connection")
		}
	}
}

// TestResolvedAddrGivesNoPolicyError: callers return a PolicyError to the client, and it must
// not tell that a name resolves to a private address.
func TestResolvedAddrGivesNoPolicyError(t *testing.T) {
	policy := newStrict()
	policy.Resolver = resolveTo("10.0.0.1")
	for name, err := range map[string]error{
		"Probe":       probe(t, policy, "https://receiver.example/"),
		"DialContext": second(policy.DialContext(t.Context(), "tcp", "receiver.example:443")),
	} {
		var rule egress.PolicyError
		if errors.As(err, &rule) {
			t.Errorf("%s: errors.As finds %v", name, rule)
		}
		if reasonOf(err) != egress.ReasonDenied {
			t.Errorf("%s = %v", name, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func TestMixedAddrs(t *testing.T) {
	tests := []struct {
		name     string
		addrs    []string
		probe    []string // dialled by the prober
		delivery []string // dialled by DialContext
	}{
		{"all public", []string{"8.8.8.8", "9.9.9.9"}, []string{"8.8.8.8:443", "9.9.9.9:443"}, []string{"8.8.8.8:443", "9.9.9.9:443"}},
		{"loopback second", []string{"8.8.8.8", "127.0.0.1"}, nil, []string{"8.8.8.8:443"}},
		{"loopback first", []string{"127.0.0.1", "8.8.8.8"}, nil, []string{"8.8.8.8:443"}},
		{"private IPv6", []string{"8.8.8.8", "fd00::1"}, nil, []string{"8.8.8.8:443"}},
		{"zone", []string{"8.8.8.8", "fe80::1%eth0"}, nil, []string{"8.8.8.8:443"}},
		{"mapped", []string{"::ffff:8.8.8.8", "::ffff:10.0.0.1"}, nil, []string{"8.8.8.8:443"}},
		{"hidden behind many", append(slices.Repeat([]string{"8.8.8.8"}, 20), "10.0.0.1"), nil, slices.Repeat([]string{"8.8.8.8:443"}, 8)},
		{"none public", []string{"127.0.0.1", "10.0.0.1"}, nil, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var network recorder
			policy := newStrict()
			policy.Resolver = resolveTo(test.addrs...)
			policy.Dial = network.Dial

			err := newProber(t, policy, nil).Probe(t.Context(), "client", egress.NewURL("https://mixed.example/"))
			if got := network.take(); !slices.Equal(got, test.probe) {
				t.Errorf("Probe dialled %v, want %v", got, test.probe)
			}
			if denied := reasonOf(err) == egress.ReasonDenied; denied != (test.probe == nil) {
				t.Errorf("Probe = %v", err)
			}
			if _, err = policy.DialContext(t.Context(), "tcp", "mixed.example:443"); err == nil {
				t.Error("DialContext connected")
			}
			if got := network.take(); !slices.Equal(got, test.delivery) {
				t.Errorf("DialContext dialled %v, want %v", got, test.delivery)
			}
		})
	}
}

// TestDialContextRefuses dials addresses that aren't in any URL that passed the check.
func TestDialContextRefuses(t *testing.T) {
	var network recorder
	policy := egress.Development()
	policy.Resolver = resolveTo("127.0.0.1")
	policy.Dial = network.Dial
	for address, want := range map[string]egress.PolicyError{
		":80":                  egress.ErrNoHost,
		"":                     egress.ErrInvalidPort,
		"127.0.0.1":            egress.ErrInvalidPort,
		"127.0.0.1:":           egress.ErrInvalidPort,
		"127.0.0.1:0":          egress.ErrInvalidPort,
		"127.0.0.1:http":       egress.ErrInvalidPort,
		"127.1:80":             egress.ErrNumericHost,
		"0x7f.1:80":            egress.ErrNumericHost,
		"[::1%lo]:80":          egress.ErrZone,
		"[::x]:80":             egress.ErrInvalidSyntax,
		"bad name:80":          egress.ErrInvalidHostName,
		"１２７.０.０.１:80":         egress.ErrInvalidHostName,
		"10.0.0.1:80":          egress.ErrNotPublic,
		"receiver.example.:80": egress.ErrTrailingDot,
	} {
		if _, err := policy.DialContext(t.Context(), "tcp", address); !errors.Is(err, want) {
			t.Errorf("DialContext(%q) = %v, want %v", address, err, want)
		}
	}
	for _, network := range []string{"udp", "unix", "tcp4", ""} {
		var unknown net.UnknownNetworkError
		if _, err := policy.DialContext(t.Context(), network, "127.0.0.1:80"); !errors.As(err, &unknown) {
			t.Errorf("DialContext(%q) = %v", network, err)
		}
	}
	if dialled := network.take(); dialled != nil {
		t.Errorf("dialled %v", dialled)
	}
}

func TestPortIsCheckedOnDial(t *testing.T) {
	var network recorder
	policy := newStrict()
	policy.Resolver, policy.Dial, policy.Ports = resolveTo(publicAddr), network.Dial, []uint16{443}
	if _, err := policy.DialContext(t.Context(), "tcp", "example.com:22"); !errors.Is(err, egress.ErrPortNotAllowed) {
		t.Errorf("DialContext = %v", err)
	}
	if dialled := network.take(); dialled != nil {
		t.Errorf("dialled %v", dialled)
	}
}

func TestDialErrors(t *testing.T) {
	noAddrs := resolverFunc(func(context.Context, string) ([]netip.Addr, error) { return nil, nil })
	slow := resolverFunc(func(ctx context.Context, _ string) ([]netip.Addr, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	dnsTimeout := resolverFunc(func(_ context.Context, host string) ([]netip.Addr, error) {
		return nil, &net.DNSError{Err: "i/o timeout", Name: host, IsTimeout: true}
	})
	tests := []struct {
		name     string
		resolver egress.Resolver
		want     egress.Reason
	}{
		{"unknown name", unknownName, egress.ReasonDNS},
		{"no address", noAddrs, egress.ReasonDNS},
		{"slow resolver", slow, egress.ReasonTimeout},
		{"resolver timeout", dnsTimeout, egress.ReasonTimeout},
		{"private", resolveTo("10.0.0.1"), egress.ReasonDenied},
		{"refused", resolveTo(publicAddr), egress.ReasonConnection},
		{"refused, then private", resolveTo(publicAddr, "10.0.0.1"), egress.ReasonConnection},
		{"private, then refused", resolveTo("10.0.0.1", publicAddr), egress.ReasonDenied},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var network recorder
				policy := newStrict()
				policy.Resolver, policy.Dial = test.resolver, network.Dial
				_, err := policy.DialContext(t.Context(), "tcp", "receiver.example:8443")
				if got := reasonOf(err); got != test.want {
					t.Errorf("DialContext = %v, want %v", err, test.want)
				}
				text := "egress: receiver.example:8443 is unreachable: " + string(test.want)
				if err.Error() != text {
					t.Errorf("text %q, want %q", err, text)
				}
			})
		})
	}
}

// dials are the attempts to connect of a test with a fake clock.
type dials struct {
	start time.Time
	mu    sync.Mutex
	order []string
	at    []time.Duration
	open  int // attempts and connections
}

// record records an attempt. What it returns is to be called at the end of the attempt, or of its
// connection.
func (d *dials) record(address string) (end func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.order, d.at = append(d.order, address), append(d.at, time.Since(d.start))
	d.open++
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.open--
	}
}

// countedConn is a connection that counts as open until it's closed.
type countedConn struct {
	net.Conn
	end func()
}

func (c countedConn) Close() error {
	c.end()
	return nil
}

// TestAddressesTakeTurns: whatever addresses lead nowhere, the one that works is tried soon, both
// by probes and by calls. Nothing is left of the others: neither attempts, nor connections.
func TestAddressesTakeTurns(t *testing.T) {
	const tick = 300 * time.Millisecond
	six := func(n int) string { return fmt.Sprintf("2606:2800::%d", n) }
	four := func(n int) string { return fmt.Sprintf("8.8.8.%d", n) }
	many := []string{six(1), six(2), six(3), six(4), six(5), six(6), six(7), six(8), four(1), four(2), four(3)}
	for _, test := range []struct {
		name  string
		addrs []string
		does  func(addr string) string // "refuses", "is silent", "is slow" or "connects"
		order []string
		at    []time.Duration
		fails bool
	}{
		{
			"IPv6 is refused", many,
			func(addr string) string { return map[bool]string{true: "refuses", false: "connects"}[addr[0] == '2'] },
			[]string{six(1), four(1)},
			[]time.Duration{0, 0},
			false,
		},
		{
			"IPv6 is silent", many,
			func(addr string) string { return map[bool]string{true: "is silent", false: "connects"}[addr[0] == '2'] },
			[]string{six(1), four(1)},
			[]time.Duration{0, tick},
			false,
		},
		{
			"IPv4 is silent",
			[]string{four(1), four(2), six(1), four(3), six(2)},
			func(addr string) string { return map[bool]string{true: "connects", false: "is silent"}[addr == six(2)] },
			[]string{four(1), six(1), four(2), six(2)},
			[]time.Duration{0, tick, 2 * tick, 3 * tick},
			false,
		},
		{
			"all are slow",
			[]string{six(1), six(2), four(1)},
			func(string) string { return "is slow" },
			[]string{six(1), four(1), six(2)},
			[]time.Duration{0, tick, 2 * tick},
			false,
		},
		{
			"one refuses after another fell silent",
			[]string{six(1), four(1), six(2)},
			func(addr string) string {
				return map[string]string{six(1): "is silent", four(1): "refuses", six(2): "connects"}[addr]
			},
			[]string{six(1), four(1), six(2)},
			[]time.Duration{0, tick, tick},
			false,
		},
		{
			"all are silent", many,
			func(string) string { return "is silent" },
			[]string{six(1), four(1), six(2), four(2), six(3), four(3), six(4), six(5)},
			[]time.Duration{0, tick, 2 * tick, 3 * tick, 4 * tick, 5 * tick, 6 * tick, 7 * tick},
			true,
		},
		{
			"all refuse", many,
			func(string) string { return "refuses" },
			[]string{six(1), four(1), six(2), four(2), six(3), four(3), six(4), six(5)},
			make([]time.Duration, 8), true,
		},
		{
			"mapped and NAT64",
			[]string{"::ffff:8.8.8.8", four(1), "64:ff9b::8.8.8.9"},
			func(string) string { return "refuses" },
			[]string{"8.8.8.8", "64:ff9b::808:809", four(1)},
			make([]time.Duration, 3), true,
		},
	} {
		for name, call := range map[string]func(*testing.T, *egress.Policy) error{
			"probe": func(t *testing.T, policy *egress.Policy) error {
				return newProber(t, policy, nil).Probe(t.Context(), "client", egress.NewURL("http://receiver.example/"))
			},
			"call": func(t *testing.T, policy *egress.Policy) error {
				conn, err := policy.DialContext(t.Context(), "tcp", "receiver.example:80")
				if err == nil {
					_ = conn.Close()
				}
				return err
			},
		} {
			t.Run(test.name+", "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					tried := &dials{start: time.Now()}
					policy := newStrict()
					policy.AllowHTTP, policy.AllowNAT64, policy.Resolver = true, true, resolveTo(test.addrs...)
					policy.Dial = func(ctx context.Context, _, address string) (net.Conn, error) {
						addr := netip.MustParseAddrPort(address).Addr().String()
						end := tried.record(addr)
						switch test.does(addr) {
						case "refuses":
							end()
							return nil, errDialled
						case "is silent":
							<-ctx.Done()
							end()
							return nil, ctx.Err()
						case "is slow": // and connects even if nobody wants that any more
							time.Sleep(2*tick + tick/2)
						}
						return countedConn{nil, end}, nil
					}
					if err := call(t, policy); (err != nil) != test.fails {
						t.Error(err)
					}
					synctest.Wait()
					if !slices.Equal(tried.order, test.order) || !slices.Equal(tried.at, test.at) {
						t.Errorf("tried %v at %v, want %v at %v", tried.order, tried.at, test.order, test.at)
					}
					if tried.open != 0 {
						t.Errorf("%d attempts or connections are left", tried.open)
					}
				})
			})
		}
	}
}

// TestLittleTimeForManyAddresses: with a deadline of less than 300 milliseconds for each address,
// every address still gets its turn.
func TestLittleTimeForManyAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tried := &dials{start: time.Now()}
		policy := newStrict()
		policy.Resolver = resolveTo("8.8.8.1", "8.8.8.2", "8.8.8.3", "8.8.8.4")
		policy.Dial = func(ctx context.Context, _, address string) (net.Conn, error) {
			defer tried.record(address)()
			<-ctx.Done()
			return nil, ctx.Err()
		}
		ctx, cancel := context.WithTimeout(t.Context(), 400*time.Millisecond)
		defer cancel()
		_, err := policy.DialContext(ctx, "tcp", "receiver.example:443")
		if reasonOf(err) != egress.ReasonTimeout || len(tried.order) != 4 || tried.open != 0 {
			t.Errorf("%v, tried %v at %v", err, tried.order, tried.at)
		}
	})
}

// TestPanicOfOneAttempt: a panic of Dial is what the caller gets, and the other attempts end.
func TestPanicOfOneAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tried := &dials{start: time.Now()}
		policy := newStrict()
		policy.Resolver = resolveTo("8.8.8.1", "8.8.8.2", "8.8.8.3")
		policy.Dial = func(ctx context.Context, _, address string) (net.Conn, error) {
			defer tried.record(address)()
			if address == "8.8.8.2:443" {
				panic("of the host")
			}
			<-ctx.Done()
			return nil, ctx.Err()
		}
		_, err := policy.DialContext(t.Context(), "tcp", "receiver.example:443")
		if err == nil || !strings.HasPrefix(err.Error(), "of the host\n") || len(tried.order) != 2 || tried.open != 0 {
			t.Errorf("%v, tried %v, %d are left", err, tried.order, tried.open)
		}
	})
}

// closeNotifier is a connection that reports when it is closed.
type closeNotifier struct {
	net.Conn
	closed chan struct{}
}

func (c closeNotifier) Close() error {
	close(c.closed)
	return nil
}

func TestDialTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		policy := newStrict()
		policy.Resolver = resolveTo("8.8.8.8", "9.9.9.9")
		policy.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		start := time.Now()
		_, err := policy.DialContext(t.Context(), "tcp", "receiver.example:443")
		if reasonOf(err) != egress.ReasonTimeout || time.Since(start) != 10*time.Second {
			t.Errorf("DialContext = %v after %v", err, time.Since(start))
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		_, err = policy.DialContext(ctx, "tcp", "receiver.example:443")
		if !errors.Is(err, context.Canceled) || reasonOf(err) != "" {
			t.Errorf("DialContext with a cancelled context = %v", err)
		}
	})
}

// TestDialEndsWithRequest: net/http detaches a dial from the context of its request, and
// would leave it open when the request has failed.
func TestDialEndsWithRequest(t *testing.T) {
	const deadline = time.Second
	probing := func(t *testing.T, policy *egress.Policy, target string) {
		opts := &egress.ProberOptions{HTTPProbe: must(egress.AnyResponse(http.MethodGet)), Timeout: deadline}
		if err := newProber(t, policy, opts).Probe(t.Context(), "client", egress.NewURL(target)); reasonOf(err) != egress.ReasonTimeout {
			t.Errorf("Probe = %v", err)
		}
	}
	sending := func(t *testing.T, policy *egress.Policy, target string) {
		ctx, cancel := context.WithTimeout(t.Context(), deadline)
		defer cancel()
		if err := post(ctx, newClient(t, policy), target, nil, readSome); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Client = %v", err)
		}
	}
	for name, send := range map[string]func(*testing.T, *egress.Policy, string){"probe": probing, "client": sending} {
		for _, target := range []string{"http://receiver.example/", "https://receiver.example/"} {
			t.Run(name+" "+target, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					network, start := newHanging(), time.Now()
					policy := newStrict()
					policy.AllowHTTP, policy.Resolver, policy.Dial = true, resolveTo(publicAddr), network.Dial
					send(t, policy, target)
					<-network.cancelled
					if open := time.Since(start); open != deadline {
						t.Errorf("the dial ended after %v", open)
					}
				})
			})
		}
	}
}

// TestHandshakeTimeout has a receiver that accepts and then stays silent. Only the handshake
// has a deadline.
func TestHandshakeTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network, start := hooktest.NewNetwork(), time.Now()
		closed := make(chan time.Duration, 1)
		go func() {
			conn, err := network.Accept()
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, conn)
			closed <- time.Since(start)
		}()
		policy := newStrict()
		policy.Resolver, policy.Dial = resolveTo(publicAddr), network.Dial
		_, err := roundTrip(t, newTransport(t, policy), "https://receiver.example/")
		if reasonOf(err) != egress.ReasonTimeout {
			t.Errorf("RoundTrip = %v", err)
		}
		if open := <-closed; open != 10*time.Second {
			t.Errorf("the connection was open for %v", open)
		}
	})
}

// TestHostFunctionsPanic: net/http dials in its own goroutine. There, a panic of a host's
// function would end the process, and runtime.Goexit would leave the caller waiting.
func TestHostFunctionsPanic(t *testing.T) {
	for _, test := range []struct {
		name, want string
		fail       func()
	}{
		{"panic", "broken on purpose", func() { panic("broken on purpose") }},
		{"Goexit", "", runtime.Goexit},
	} {
		failing := map[string]func(*egress.Policy){
			"Resolver": func(p *egress.Policy) {
				p.Resolver = resolverFunc(func(context.Context, string) ([]netip.Addr, error) {
					test.fail()
					return nil, nil
				})
			},
			"LocalAddrs": func(p *egress.Policy) {
				p.LocalAddrs = func(context.Context) ([]netip.Addr, error) {
					test.fail()
					return nil, nil
				}
			},
			"Dial": func(p *egress.Policy) {
				p.Dial = func(context.Context, string, string) (net.Conn, error) {
					test.fail()
					return nil, nil
				}
			},
		}
		for function, set := range failing {
			t.Run(function+" "+test.name, func(t *testing.T) {
				policy := newStrict()
				policy.AllowHTTP, policy.Resolver, policy.Dial = true, resolveTo(publicAddr), dialLoopback
				set(policy)
				for name, dial := range map[string]func() error{
					"DialContext": func() error { return second(policy.DialContext(t.Context(), "tcp", "receiver.example:80")) },
					"Transport":   func() error { return second(roundTrip(t, newTransport(t, policy), target)) },
				} {
					if err := dial(); err == nil || !strings.Contains(err.Error(), test.want) {
						t.Errorf("%s = %v", name, err)
					}
				}
				for name, httpProbe := range map[string]egress.HTTPProbe{
					"without HTTPProbe": nil,
					"with HTTPProbe":    must(egress.AnyResponse(http.MethodGet)),
				} {
					func() {
						defer func() {
							if value := recover(); (value != nil) != (test.want != "") || !strings.Contains(fmt.Sprint(value), test.want) {
								t.Errorf("Probe %s panicked with %v", name, value)
							}
						}()
						if err := probeWith(t, policy, httpProbe, target); err == nil {
							t.Errorf("Probe %s = nil", name)
						}
					}()
				}
			})
		}
	}
}

// TestDialWithoutConn has a Dial that returns neither a connection nor an error.
func TestDialWithoutConn(t *testing.T) {
	policy := newStrict()
	policy.Resolver = resolveTo(publicAddr)
	policy.Dial = func(context.Context, string, string) (net.Conn, error) { return nil, nil }
	if err := probe(t, policy, "https://receiver.example/"); reasonOf(err) != egress.ReasonConnection {
		t.Errorf("Probe = %v", err)
	}
}
