package egress_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/webhookcfg/egress"
)

const receiverName = "receiver.example"

// newLoopback returns a policy that allows loopback, to which every name resolves.
func newLoopback(a *authority) *egress.Policy {
	policy := egress.Development()
	policy.Resolver, policy.Dial = resolveTo("127.0.0.1"), dialLoopback
	if a != nil {
		policy.RootCAs = a.pool()
	}
	return policy
}

func probe(t *testing.T, policy *egress.Policy, target string) error {
	t.Helper()
	return probeWith(t, policy, nil, target)
}

func TestProbeSendsNoHTTP(t *testing.T) {
	ca := newAuthority(t)
	tests := []struct {
		scheme, host string
		config       *tls.Config
	}{
		{"http", receiverName, nil},
		{"http", "127.0.0.1", nil},
		{"https", receiverName, ca.valid(t, receiverName)},
		{"https", "RECEIVER.example", ca.valid(t, receiverName)},
		{"https", "127.0.0.1", ca.valid(t, "127.0.0.1")},
	}
	for _, test := range tests {
		t.Run(test.scheme+" "+test.host, func(t *testing.T) {
			receiver := listen(t)
			all := receiver.serveReading(test.config)
			if err := probe(t, newLoopback(ca), receiver.at(test.scheme, test.host)); err != nil {
				t.Fatal(err)
			}
			got := <-all
			if got.err != nil || len(got.bytes) != 0 {
				t.Errorf("the receiver got %q, %v", got.bytes, got.err)
			}
			if n := receiver.accepted.Load(); n != 1 {
				t.Errorf("%d connections", n)
			}
		})
	}
}

func TestProbeTLSFailures(t *testing.T) {
	good, foreign := newAuthority(t), newAuthority(t)
	old := good.valid(t, receiverName)
	old.MinVersion, old.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	expired := serverConfig(good.certificate(t, receiverName, time.Now().Add(-time.Minute)))
	notYet := serverConfig(good.certificate(t, receiverName, time.Now().Add(3*time.Hour)))
	tests := []struct {
		name   string
		config *tls.Config // nil: no TLS at all
		want   egress.Reason
	}{
		{"wrong name", good.valid(t, "other.example"), egress.ReasonWrongName},
		{"address for name", good.valid(t, "127.0.0.1"), egress.ReasonWrongName},
		{"expired", expired, egress.ReasonCertificateExpired},
		{"not valid yet", notYet, egress.ReasonCertificateExpired},
		{"unknown root", foreign.valid(t, receiverName), egress.ReasonUnknownAuthority},
		{"TLS 1.1", old, egress.ReasonTLS},
		{"no TLS", nil, egress.ReasonTLS},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			receiver := listen(t)
			receiver.serve(func(conn net.Conn) {
				if test.config != nil {
					_ = tls.Server(conn, test.config).Handshake()
					return
				}
				_, _ = io.WriteString(conn, "HTTP/1.1 400 Bad Request\r\n\r\n")
			})
			err := probe(t, newLoopback(good), receiver.at("https", receiverName))
			if got := reasonOf(err); got != test.want {
				t.Errorf("Probe = %v, want %v", err, test.want)
			}
		})
	}
}

// TestProbeTimeout has receivers that accept the connection and send nothing.
func TestProbeTimeout(t *testing.T) {
	anyResponse := must(egress.AnyResponse(http.MethodHead))
	for name, test := range map[string]struct {
		scheme    string
		httpProbe egress.HTTPProbe
	}{
		"TLS handshake":               {"https", nil},
		"TLS handshake of HTTP probe": {"https", anyResponse},
		"HTTP response":               {"http", anyResponse},
	} {
		t.Run(name, func(t *testing.T) {
			receiver := listen(t)
			receiver.serve(func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) })
			prober := newProber(t, newLoopback(nil), &egress.ProberOptions{
				HTTPProbe: test.httpProbe,
				Timeout:   50 * time.Millisecond,
			})
			target := egress.NewURL(receiver.at(test.scheme, receiverName))
			if err := prober.Probe(t.Context(), "client", target); reasonOf(err) != egress.ReasonTimeout {
				t.Errorf("Probe = %v, want timeout", err)
			}
		})
	}
}

func TestProbeRefused(t *testing.T) {
	err := probe(t, newLoopback(nil), "http"+noServer)
	if reasonOf(err) != egress.ReasonConnection {
		t.Errorf("Probe = %v, want refused", err)
	}
	if strings.Contains(err.Error(), "secret") {
		t.Errorf("the text %q has the path", err)
	}
}

func TestProbeReturnsWhatCheckReturns(t *testing.T) {
	var network recorder
	policy := newStrict()
	policy.Dial = network.Dial
	policy.Resolver = resolveTo(publicAddr)
	prober := newProber(t, policy, nil)
	for _, test := range refusals {
		if err := prober.Probe(t.Context(), "client", egress.NewURL(test.url)); err != test.rule {
			t.Errorf("Probe(%q) = %v, want %v", test.url, err, test.rule)
		}
	}
	if dialled := network.take(); dialled != nil {
		t.Errorf("dialled %v", dialled)
	}
}

func TestProberOptions(t *testing.T) {
	for name, bad := range map[string]egress.ProberOptions{
		"Timeout":               {Timeout: -1},
		"MaxProbes":             {MaxProbes: -1},
		"ClientProbesPerMinute": {ClientProbesPerMinute: -1},
	} {
		if _, err := new(egress.Policy).Prober(&bad); err == nil {
			t.Errorf("negative %s gives no error", name)
		}
	}
}

func TestProbeWithEndedContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := newHanging()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		err := <-startProbe(ctx, newHangingProber(t, network, nil), "client", target)
		synctest.Wait()
		if !errors.Is(err, context.Canceled) || len(network.dialled) != 0 {
			t.Errorf("Probe = %v, %d connections", err, len(network.dialled))
		}
	})
}

// TestFailedHandshakeLeavesNoConnection checks that the connection is closed.
func TestFailedHandshakeLeavesNoConnection(t *testing.T) {
	near, far := net.Pipe()
	_ = far.Close()
	conn := closeNotifier{Conn: near, closed: make(chan struct{})}
	policy := newStrict()
	policy.Resolver = resolveTo(publicAddr)
	policy.Dial = func(context.Context, string, string) (net.Conn, error) { return conn, nil }
	if err := probe(t, policy, "https://receiver.example/"); reasonOf(err) != egress.ReasonTLS {
		t.Errorf("Probe = %v", err)
	}
	select {
	case <-conn.closed:
	default:
		t.Error("the connection is left open")
	}
}

// hanging is a network in which every connection hangs until release is called.
type hanging struct {
	dialled   chan string   // the addresses that were dialled
	cancelled chan struct{} // one for each dial that was cancelled
	released  chan struct{}
}

func newHanging() *hanging {
	return &hanging{dialled: make(chan string, 100), cancelled: make(chan struct{}, 100), released: make(chan struct{})}
}

func (h *hanging) Dial(ctx context.Context, _, address string) (net.Conn, error) {
	h.dialled <- address
	select {
	case <-h.released:
		conn, far := net.Pipe()
		return conn, far.Close()
	case <-ctx.Done():
		h.cancelled <- struct{}{}
		return nil, ctx.Err()
	}
}

func (h *hanging) release() { close(h.released) }

// newHangingProber probes http URLs over a hanging network.
func newHangingProber(t *testing.T, h *hanging, opts *egress.ProberOptions) *egress.Prober {
	t.Helper()
	policy := newStrict()
	policy.AllowHTTP, policy.Dial, policy.Resolver = true, h.Dial, resolveTo(publicAddr)
	return newProber(t, policy, opts)
}

// startProbe probes in a goroutine and delivers the result.
func startProbe(ctx context.Context, prober *egress.Prober, client, target string) <-chan error {
	result := make(chan error, 1)
	go func() { result <- prober.Probe(ctx, client, egress.NewURL(target)) }()
	return result
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// countingResolver counts the lookups.
func countingResolver(count *int) egress.Resolver {
	return resolverFunc(func(context.Context, string) ([]netip.Addr, error) {
		*count++
		return parseAddrs(publicAddr), nil
	})
}

const target = "http://receiver.example/secret"

func TestConcurrentProbesAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := newHanging()
		prober := newHangingProber(t, network, nil)
		var results []<-chan error
		for _, client := range []string{"a", "a", "b", "c"} {
			results = append(results, startProbe(t.Context(), prober, client, target))
		}
		other := startProbe(t.Context(), prober, "a", "http://other.example/")
		synctest.Wait()
		if n := len(network.dialled); n != 2 {
			t.Errorf("%d connections for two targets", n)
		}
		network.release()
		for _, result := range append(results, other) {
			if err := <-result; err != nil {
				t.Error(err)
			}
		}
	})
}

func TestResultIsNotCached(t *testing.T) {
	lookups := 0
	policy := newStrict()
	policy.Resolver = countingResolver(&lookups)
	policy.Dial = new(recorder).Dial
	prober := newProber(t, policy, nil)
	for want := 1; want <= 3; want++ {
		_ = prober.Probe(t.Context(), "client", egress.NewURL("https://receiver.example/"))
		if lookups != want {
			t.Fatalf("%d look-ups after %d probes", lookups, want)
		}
	}
}

func TestCancelAffectsNoOtherCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := newHanging()
		prober := newHangingProber(t, network, nil)
		ctx, cancel := context.WithCancel(t.Context())
		first := startProbe(ctx, prober, "a", target)
		synctest.Wait()
		second := startProbe(t.Context(), prober, "b", target)
		synctest.Wait()
		cancel()
		if err := <-first; !errors.Is(err, context.Canceled) {
			t.Errorf("the cancelled caller got %v", err)
		}
		synctest.Wait()
		network.release()
		if err := <-second; err != nil {
			t.Errorf("the waiting caller got %v", err)
		}
	})
}

// TestProbeOutlivesItsCallers: a probe ends with its own timeout, and later callers join
// it until then.
func TestProbeOutlivesItsCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := newHanging()
		prober := newHangingProber(t, network, nil)
		start := time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		first, second := startProbe(ctx, prober, "a", target), startProbe(ctx, prober, "b", target)
		synctest.Wait()
		cancel()
		for _, result := range []<-chan error{first, second} {
			if err := <-result; !errors.Is(err, context.Canceled) {
				t.Errorf("a caller whose context ended got %v", err)
			}
		}
		time.Sleep(time.Second)
		third := startProbe(t.Context(), prober, "c", target)
		<-network.cancelled
		if err := <-third; reasonOf(err) != egress.ReasonTimeout {
			t.Errorf("the caller that joined got %v", err)
		}
		if took := time.Since(start); took != 5*time.Second || len(network.dialled) != 1 {
			t.Errorf("%d connections, and the probe took %v", len(network.dialled), took)
		}
	})
}

func TestDeadlineOfCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := newHanging()
		defer network.release()
		prober := newHangingProber(t, network, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := <-startProbe(ctx, prober, "a", target); !errors.Is(err, context.DeadlineExceeded) || reasonOf(err) != egress.ReasonTimeout {
			t.Errorf("Probe = %v, want the error of the context with a reason", err)
		}
	})
}

func TestDefaultTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		prober := newHangingProber(t, newHanging(), nil)
		start := time.Now()
		err := <-startProbe(t.Context(), prober, "a", target)
		if waited := time.Since(start); reasonOf(err) != egress.ReasonTimeout || waited != 5*time.Second {
			t.Errorf("Probe = %v after %v", err, waited)
		}
	})
}

// TestManyCallers is for the race detector.
func TestManyCallers(t *testing.T) {
	policy := newStrict()
	policy.Resolver, policy.Dial = resolveTo(publicAddr), new(recorder).Dial
	prober := newProber(t, policy, &egress.ProberOptions{MaxProbes: 10_000, ClientProbesPerMinute: 1_000_000})
	var results []<-chan error
	for i := range 500 {
		ctx, cancel := context.WithCancel(t.Context())
		results = append(results, startProbe(ctx, prober, "client", "https://receiver.example/"))
		if i%3 == 0 {
			go cancel()
		} else {
			defer cancel()
		}
	}
	for _, result := range results {
		if err := <-result; !errors.Is(err, context.Canceled) && !errors.Is(err, errDialled) {
			t.Error(err)
		}
	}
}

// panicking is a Resolver that panics.
type panicking struct{}

func (panicking) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	panic("broken on purpose")
}

// TestPanicReachesCallers: a probe runs in its own goroutine, where no caller could recover a
// panic of the host's resolver.
func TestPanicReachesCallers(t *testing.T) {
	policy := newStrict()
	policy.Resolver = panicking{}
	prober := newProber(t, policy, nil)
	for range 2 {
		func() {
			defer func() {
				if value := recover(); !strings.Contains(fmt.Sprint(value), "broken on purpose") {
					t.Errorf("recovered %v", value)
				}
			}()
			_ = prober.Probe(t.Context(), "client", egress.NewURL("https://receiver.example/"))
			t.Error("no panic")
		}()
	}
}

// TestGoexitIsNotSuccess: an HTTPProbe that ends its goroutine has not succeeded.
func TestGoexitIsNotSuccess(t *testing.T) {
	exit := func(context.Context, string, *http.Client, egress.URL) error {
		runtime.Goexit()
		return nil
	}
	if err := probeWith(t, newLoopback(nil), exit, "http://receiver.example/"); err == nil {
		t.Error("Probe = nil")
	}
}
