package egress_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// errEnded is the cause of an ended context, and the error that a careless function returns
// then.
var errEnded = errors.New("ended")

// TestReasons: a failure has the same reason in a probe and when you send a notification, no
// matter what ends the wait.
func TestReasons(t *testing.T) {
	good, foreign := newAuthority(t), newAuthority(t)
	afterRequest := func(then func(*net.TCPConn)) func(net.Conn) {
		return func(conn net.Conn) {
			_, _ = conn.Read(make([]byte, 4096))
			then(conn.(*net.TCPConn))
		}
	}
	handshake := func(config *tls.Config) func(net.Conn) {
		return func(conn net.Conn) { _ = tls.Server(conn, config).Handshake() }
	}
	for _, test := range []struct {
		name   string
		scheme string
		serve  func(net.Conn)       // nil: none listens
		policy func(*egress.Policy) // changes the policy
		want   egress.Reason
	}{
		{"unknown name", "https", silence, func(p *egress.Policy) { p.Resolver = unknownName }, egress.ReasonDNS},
		{"name without addresses", "https", silence, func(p *egress.Policy) { p.Resolver = resolveTo() }, egress.ReasonDNS},
		{"denied address", "https", silence, func(p *egress.Policy) { p.Resolver = resolveTo("10.0.0.1") }, egress.ReasonDenied},
		{"no server", "https", nil, nil, egress.ReasonConnection},
		{"no server, without TLS", "http", nil, nil, egress.ReasonConnection},
		{"close instead of TLS", "https", func(net.Conn) {}, nil, egress.ReasonTLS},
		{"reset instead of TLS", "https", afterRequest(reset), nil, egress.ReasonTLS},
		{"noise instead of TLS", "https", func(conn net.Conn) { _, _ = io.WriteString(conn, "HTTP/1.1 400 Bad Request\r\n\r\n") }, nil, egress.ReasonTLS},
		{"wrong name", "https", handshake(good.valid(t, "other.example")), nil, egress.ReasonWrongName},
		{"unknown root", "https", handshake(foreign.valid(t, receiverName)), nil, egress.ReasonUnknownAuthority},
		{"close instead of a response", "http", afterRequest(func(*net.TCPConn) {}), nil, egress.ReasonResponse},
		{"reset instead of a response", "http", afterRequest(reset), nil, egress.ReasonResponse},
		{"noise instead of a response", "http", afterRequest(func(conn *net.TCPConn) { _, _ = io.WriteString(conn, "SSH-2.0\r\n\r\n") }), nil, egress.ReasonResponse},
		{"close after the handshake", "https", handshake(good.valid(t, receiverName)), nil, egress.ReasonResponse},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			url := egress.NewURL(test.scheme + noServer)
			if test.serve != nil {
				receiver := listen(t)
				receiver.serve(test.serve)
				url = egress.NewURL(receiver.at(test.scheme, receiverName))
			}
			policy := newLoopback(good)
			if test.policy != nil {
				test.policy(policy)
			}
			for _, caller := range callers {
				checkReason(t, caller.name, caller.call(t, policy, url, time.Minute), url, test.want)
			}
		})
	}
}

// TestUnreachableHidesItsCause: the cause may quote a receiver, and no verb prints it.
func TestUnreachableHidesItsCause(t *testing.T) {
	receiver := listen(t)
	receiver.serve(func(conn net.Conn) {
		_, _ = conn.Read(make([]byte, 4096))
		_, _ = io.WriteString(conn, "T0KEN\r\n\r\n")
	})
	url := egress.NewURL(receiver.at("http", receiverName))
	for _, caller := range callers {
		err := caller.call(t, newLoopback(newAuthority(t)), url, time.Minute)
		if cause := errors.Unwrap(err); cause == nil || !strings.Contains(cause.Error(), "T0KEN") {
			t.Fatalf("%s: the cause is %v, want one that quotes the receiver", caller.name, cause)
		}
		for _, value := range []any{err, struct{ Err error }{err}, &struct{ Err error }{err}, []error{err}} {
			if text := hooktest.Prints(value); strings.Contains(text, "T0KEN") {
				t.Errorf("%s: %T prints as %s", caller.name, value, text)
			}
		}
	}
}

// TestReasonOfTimeouts is TestReasons for everything that can fall silent.
func TestReasonOfTimeouts(t *testing.T) {
	ca := newAuthority(t)
	config := ca.valid(t, receiverName)
	for _, test := range []struct {
		name   string
		scheme string
		serve  func(net.Conn)
		policy func(*egress.Policy) // changes the policy
	}{
		{"resolver", "https", silence, func(p *egress.Policy) { p.Resolver = silentResolver }},
		{"network", "http", silence, func(p *egress.Policy) { p.Dial = silentDial }},
		{"instead of TLS", "https", silence, nil},
		{"instead of a response", "http", silence, nil},
		{"after the handshake", "https", func(conn net.Conn) { silence(tls.Server(conn, config)) }, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				policy := inMemory(t, ca, test.serve)
				if test.policy != nil {
					test.policy(policy)
				}
				url := egress.NewURL(test.scheme + "://receiver.example:8443/secret")
				for _, caller := range callers {
					checkReason(t, caller.name, caller.call(t, policy, url, time.Second), url, egress.ReasonTimeout)
				}
				time.Sleep(time.Hour) // until a probe whose caller left has ended
			})
		})
	}
}

func checkReason(t *testing.T, caller string, err error, url egress.URL, want egress.Reason) {
	t.Helper()
	known, ok := errors.AsType[*egress.UnreachableError](err)
	if !ok {
		t.Errorf("%s: %v", caller, err)
		return
	}
	if known.Reason != want || known.Timeout() != (want == egress.ReasonTimeout) {
		t.Errorf("%s: %v, want %s", caller, err, want)
	}
	if !strings.HasSuffix(url.String(), "://"+known.Endpoint) {
		t.Errorf("%s: %s is the endpoint of %v", caller, known.Endpoint, url)
	}
}

// inMemory returns a policy under which every name is that of a receiver without sockets.
// It is for bubbles of package synctest, whose clock makes a time limit exact.
func inMemory(t *testing.T, ca *authority, serve func(net.Conn)) *egress.Policy {
	network := hooktest.NewNetwork()
	t.Cleanup(func() { _ = network.Close() })
	go func() {
		for {
			conn, err := network.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }()
				serve(conn)
			}()
		}
	}()
	policy := newStrict()
	policy.AllowHTTP, policy.Resolver, policy.Dial, policy.RootCAs = true, resolveTo(publicAddr), network.Dial, ca.pool()
	return policy
}

// silence is a receiver that sends nothing.
func silence(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }

// callers are the ways to call a URL with a time limit, which return the redacted error.
var callers = []struct {
	name string
	call func(t *testing.T, policy *egress.Policy, url egress.URL, timeout time.Duration) error
}{
	{"probe", func(t *testing.T, policy *egress.Policy, url egress.URL, timeout time.Duration) error {
		opts := &egress.ProberOptions{HTTPProbe: must(egress.AnyResponse(http.MethodPost)), Timeout: timeout}
		return newProber(t, policy, opts).Probe(t.Context(), "client", url)
	}},
	{"probe with a deadline", func(t *testing.T, policy *egress.Policy, url egress.URL, timeout time.Duration) error {
		ctx, cancel := context.WithTimeoutCause(t.Context(), timeout, errEnded)
		defer cancel()
		opts := &egress.ProberOptions{HTTPProbe: must(egress.AnyResponse(http.MethodPost)), Timeout: time.Minute}
		return newProber(t, policy, opts).Probe(ctx, "client", url)
	}},
	{"client", func(t *testing.T, policy *egress.Policy, url egress.URL, timeout time.Duration) error {
		client := newClient(t, policy)
		client.Timeout = timeout
		return egress.RedactError(post(t.Context(), client, url.Reveal(), nil, readSome))
	}},
	{"client with a deadline", func(t *testing.T, policy *egress.Policy, url egress.URL, timeout time.Duration) error {
		ctx, cancel := context.WithTimeoutCause(t.Context(), timeout, errEnded)
		defer cancel()
		return egress.RedactError(post(ctx, newClient(t, policy), url.Reveal(), nil, readSome))
	}},
	{"transport with a deadline", func(t *testing.T, policy *egress.Policy, url egress.URL, timeout time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url.Reveal(), nil)
		if err != nil {
			return err
		}
		resp, err := newTransport(t, policy).RoundTrip(req)
		if err != nil {
			return err
		}
		return readSome(resp)
	}},
}

// silentResolver returns no addresses until its context ends.
var silentResolver = resolverFunc(func(ctx context.Context, _ string) ([]netip.Addr, error) {
	<-ctx.Done()
	return nil, errEnded
})

// silentDial returns no connection until a moment after its context ends. On a fake clock,
// that context and the context of the call end at the same time, in any order.
func silentDial(ctx context.Context, _, _ string) (net.Conn, error) {
	<-ctx.Done()
	time.Sleep(time.Millisecond)
	return nil, errEnded
}

// reset closes a connection with an RST segment.
func reset(conn *net.TCPConn) {
	_ = conn.SetLinger(0)
	_ = conn.Close()
}

// TestCancelledIsNoReason: if you cancel the context, you get its error, and the receiver
// isn't blamed.
func TestCancelledIsNoReason(t *testing.T) {
	receiver := listen(t)
	receiver.serve(silence)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := post(ctx, newClient(t, newLoopback(nil)), receiver.at("http", receiverName), nil, readSome)
	if reasonOf(err) != "" || !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestReasonWrapsCause: errors.Is finds the error that a reason stands for.
func TestReasonWrapsCause(t *testing.T) {
	ca, url := newAuthority(t), egress.NewURL("http://receiver.example/")
	synctest.Test(t, func(t *testing.T) {
		silent := inMemory(t, ca, silence)
		broken := inMemory(t, ca, func(conn net.Conn) { _, _ = conn.Read(make([]byte, 4096)) })
		for _, caller := range callers {
			err := caller.call(t, silent, url, time.Second)
			if !os.IsTimeout(err) || !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, errEnded) {
				t.Errorf("silence, %s: %v", caller.name, err)
			}
			err = caller.call(t, broken, url, time.Second)
			if os.IsTimeout(err) || !errors.Is(err, io.EOF) {
				t.Errorf("close, %s: %v", caller.name, err)
			}
		}
		time.Sleep(time.Hour) // until a probe whose caller left has ended
	})
}
