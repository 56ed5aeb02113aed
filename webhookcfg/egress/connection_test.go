package egress_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

func newClientWith(t *testing.T, policy *egress.Policy, opts *egress.TransportOptions) *http.Client {
	t.Helper()
	client, err := policy.Client(opts)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func TestTransportOptions(t *testing.T) {
	for name, bad := range map[string]egress.TransportOptions{
		"MaxIdleConns":        {MaxIdleConns: -1},
		"MaxIdleConnsPerHost": {MaxIdleConnsPerHost: -1},
	} {
		if _, err := newStrict().Transport(&bad); err == nil {
			t.Errorf("Transport: negative %s gives no error", name)
		}
		if _, err := newStrict().Client(&bad); err == nil {
			t.Errorf("Client: negative %s gives no error", name)
		}
	}
}

// TestIdleConnections sends a number of requests at the same time to each of some hosts, and
// then again in the reverse order.
func TestIdleConnections(t *testing.T) {
	for _, test := range []struct {
		name           string
		scheme         string
		opts           *egress.TransportOptions
		hosts, perHost int
		again          int // the connections of the way back
	}{
		{"default for a host", "https", nil, 1, 16, 0},
		{"more than the default", "http", nil, 1, 20, 4},
		{"less than the default", "http", &egress.TransportOptions{MaxIdleConnsPerHost: 5}, 1, 16, 11},
		{"more hosts", "https", &egress.TransportOptions{MaxIdleConns: 20}, 25, 1, 5},
		{"more hosts than the default", "http", nil, 1005, 1, 5},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.hosts > 1000 && !*full {
				t.Skip("with the race detector, so many connections take 300 MB")
			}
			synctest.Test(t, func(t *testing.T) {
				ca, network := newAuthority(t), hooktest.NewNetwork()
				var dials atomic.Int32
				policy := egress.Development()
				policy.Resolver, policy.RootCAs = resolveTo(publicAddr), ca.pool()
				policy.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
					dials.Add(1)
					return network.Dial(ctx, "", "")
				}
				arrived := make(chan chan struct{})
				server := &http.Server{
					Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
						proceed := make(chan struct{})
						arrived <- proceed
						<-proceed
					}),
					TLSConfig: ca.valid(t, "*.receiver.example"),
				}
				defer func() { _ = server.Close() }()
				go func() {
					if test.scheme == "https" {
						_ = server.ServeTLS(network, "", "")
					} else {
						_ = server.Serve(network)
					}
				}()
				client := newClientWith(t, policy, test.opts)
				defer client.CloseIdleConnections()
				send := func(host int) {
					url := fmt.Sprintf("%s://h%d.receiver.example/", test.scheme, host)
					for range test.perHost {
						go func() {
							if err := post(t.Context(), client, url, nil, readAll); err != nil {
								t.Error(err)
							}
						}()
					}
					var waiting []chan struct{}
					for range test.perHost {
						waiting = append(waiting, <-arrived)
					}
					for _, proceed := range waiting {
						close(proceed)
					}
					synctest.Wait()
				}
				for host := range test.hosts {
					send(host)
				}
				if n, want := int(dials.Load()), test.hosts*test.perHost; n != want {
					t.Errorf("%d connections at first, want %d", n, want)
				}
				dials.Store(0)
				for host := range test.hosts {
					send(test.hosts - 1 - host)
				}
				if n := int(dials.Load()); n != test.again {
					t.Errorf("%d connections on the way back, want %d", n, test.again)
				}
			})
		})
	}
}

// TestConnectionsOfOneRequest: the receiver closes each connection at the next request, so the request
// is sent again, over a new connection. It's not sent over each idle one first.
func TestConnectionsOfOneRequest(t *testing.T) {
	const idle = 16
	synctest.Test(t, func(t *testing.T) {
		var dials, closed atomic.Int32
		var arrived sync.WaitGroup
		arrived.Add(idle)
		policy := inMemory(t, newAuthority(t), func(conn net.Conn) {
			reader := bufio.NewReader(conn)
			for n := dials.Add(1); ; {
				if _, err := http.ReadRequest(reader); err != nil || n > idle {
					return
				}
				if closed.Load() > 0 {
					closed.Add(1)
					return
				}
				arrived.Done()
				arrived.Wait()
				_, _ = io.WriteString(conn, "HTTP/1.1 204 No Content\r\n\r\n")
			}
		})
		client := newClient(t, policy)
		for range idle {
			go func() {
				if _, err := get(t, client, "http://receiver.example/"); err != nil {
					t.Error(err)
				}
			}()
		}
		synctest.Wait()
		closed.Store(1)
		_, err := get(t, client, "http://receiver.example/")
		if reasonOf(err) != egress.ReasonResponse || closed.Load() != 1+1 || dials.Load() != idle+1 {
			t.Errorf("%v after %d idle connections and %d others", err, closed.Load()-1, dials.Load()-idle)
		}
	})
}

// TestReceiverMoves: the calls of a receiver that is always busy follow its name to another machine.
func TestReceiverMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dials atomic.Int32
		client := newClient(t, inMemory(t, newAuthority(t), func(conn net.Conn) {
			dials.Add(1)
			answering(noContent)(conn)
		}))
		start := time.Now()
		for range 60 {
			if err := post(t.Context(), client, "http://"+receiverName+"/", nil, readAll); err != nil {
				t.Error(err)
			}
			time.Sleep(10 * time.Second)
		}
		if n := dials.Load(); n != 2 {
			t.Errorf("%d connections in %v, want one for each five minutes", n, time.Since(start))
		}
		client.CloseIdleConnections()
	})
}

// TestServerName: a receiver that distinguishes upper and lower case finds its certificate, however
// the client has typed its name.
func TestServerName(t *testing.T) {
	ca := newAuthority(t)
	names := make(chan string, 2)
	config := ca.valid(t, receiverName)
	config.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		names <- hello.ServerName
		return nil, nil
	}
	receiver := listen(t)
	server := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), TLSConfig: config}
	go func() { _ = server.ServeTLS(receiver, "", "") }()
	t.Cleanup(func() { _ = server.Close() })
	client := newClient(t, newLoopback(ca))
	url := receiver.at("https", strings.ToUpper(receiverName))
	if err := post(t.Context(), client, url, nil, readAll); err != nil {
		t.Error(err)
	}
	if got := <-names; got != receiverName {
		t.Errorf("got %s", got)
	}
}

// onlyHTTP2 starts a server that speaks only HTTP/2. If it alerts, it refuses a handshake
// that doesn't offer HTTP/2, as RFC 7301 demands. Otherwise it accepts it without a protocol,
// as crypto/tls does, and then closes the connection.
func onlyHTTP2(t *testing.T, ca *authority, alerts bool) *listener {
	t.Helper()
	receiver := listen(t)
	server := &http.Server{
		Handler:   http.NotFoundHandler(),
		TLSConfig: ca.valid(t, receiverName),
		Protocols: new(http.Protocols),
		ErrorLog:  log.New(io.Discard, "", 0),
	}
	server.Protocols.SetHTTP2(true)
	if alerts {
		refusing := ca.valid(t, receiverName)
		refusing.NextProtos = []string{"none that is offered"}
		server.TLSConfig.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			if slices.Contains(hello.SupportedProtos, "h2") {
				return nil, nil // the configuration as it is
			}
			return refusing, nil
		}
	}
	go func() { _ = server.ServeTLS(receiver, "", "") }()
	t.Cleanup(func() { _ = server.Close() })
	return receiver
}

// TestOnlyHTTP2: a receiver that speaks only HTTP/2 can't be reached. If it alerts, a probe
// notices.
func TestOnlyHTTP2(t *testing.T) {
	ca := newAuthority(t)
	for _, alerts := range []bool{true, false} {
		receiver := onlyHTTP2(t, ca, alerts)
		url := egress.NewURL(receiver.at("https", receiverName))
		policy := newLoopback(ca)

		standard := &http.Transport{
			DialContext:       redirected(receiver.Addr()),
			TLSClientConfig:   &tls.Config{RootCAs: ca.pool(), MinVersion: tls.VersionTLS12},
			ForceAttemptHTTP2: true,
		}
		defer standard.CloseIdleConnections()
		resp, err := get(t, &http.Client{Transport: standard}, url.Reveal())
		if err != nil || resp.ProtoMajor != 2 {
			t.Fatalf("the test has no effect: %v, %v", resp, err)
		}

		want := egress.ReasonTLS
		if !alerts {
			want = egress.ReasonResponse
		}
		for _, caller := range callers {
			checkReason(t, caller.name, caller.call(t, policy, url, time.Minute), url, want)
		}
		err = newProber(t, policy, nil).Probe(t.Context(), "client", url)
		if !alerts {
			if err != nil { // nothing shows before a request is sent
				t.Error(err)
			}
			continue
		}
		checkReason(t, "connect probe", err, url, egress.ReasonTLS)
		if cause := errors.Unwrap(err); cause == nil || !strings.Contains(cause.Error(), "no application protocol") {
			t.Errorf("the cause is %v", cause)
		}
	}
}
