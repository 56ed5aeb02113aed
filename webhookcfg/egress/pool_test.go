package egress_test

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/internal/hostile"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// answering returns a receiver that sends text after each request.
func answering(text string) func(net.Conn) {
	return func(conn net.Conn) {
		reader := bufio.NewReader(conn)
		for {
			if _, err := http.ReadRequest(reader); err != nil {
				return
			}
			if _, err := io.WriteString(conn, text); err != nil {
				return
			}
		}
	}
}

// TestFailedHostsAreForgotten: a transport keeps nothing of hosts whose connections never
// become idle.
func TestFailedHostsAreForgotten(t *testing.T) {
	for _, test := range []struct {
		name string
		dial func(t *testing.T) *egress.Policy
	}{
		{"dial fails", func(*testing.T) *egress.Policy {
			policy := newStrict()
			policy.AllowHTTP, policy.Resolver, policy.Dial = true, resolveTo(publicAddr), new(failingDialer).Dial
			return policy
		}},
		{"dial panics", func(*testing.T) *egress.Policy {
			policy := newStrict()
			policy.AllowHTTP, policy.Resolver = true, panicking{}
			return policy
		}},
		{"response closes", func(t *testing.T) *egress.Policy {
			return inMemory(t, newAuthority(t), answering("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"))
		}},
		{"closes after a response", func(t *testing.T) *egress.Policy {
			return inMemory(t, newAuthority(t), func(conn net.Conn) {
				_, _ = http.ReadRequest(bufio.NewReader(conn))
				_, _ = io.WriteString(conn, "HTTP/1.1 204 No Content\r\n\r\n")
			})
		}},
		{"body isn't read", func(t *testing.T) *egress.Policy {
			return inMemory(t, newAuthority(t), answering("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"))
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			client := newClient(t, test.dial(t))
			for host := range 100 {
				resp, err := client.Get(fmt.Sprintf("http://h%d.example/", host))
				if err == nil {
					_ = resp.Body.Close()
				}
			}
			awaitPooled(t, client, func(hosts, idle int) bool { return hosts == 0 && idle == 0 })
		})
	}
}

type failingDialer struct{}

func (*failingDialer) Dial(context.Context, string, string) (net.Conn, error) { return nil, errDialled }

// TestIdleConnectionsAreKept: hosts that fail don't cost the others a connection.
func TestIdleConnectionsAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dials int
		policy := inMemory(t, newAuthority(t), answering("HTTP/1.1 204 No Content\r\n\r\n"))
		dial := policy.Dial
		policy.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			if strings.HasSuffix(address, ":81") {
				return nil, errDialled
			}
			dials++
			return dial(ctx, network, address)
		}
		client := newClient(t, policy)
		send := func(host string, port int) {
			_, _ = get(t, client, fmt.Sprintf("http://%s.example:%d/", host, port))
			synctest.Wait()
		}
		send("good", 80)
		for i := range 2000 {
			send(fmt.Sprint("bad", i), 81)
			send(fmt.Sprint("another", i%100), 80)
		}
		send("good", 80)
		if dials != 101 {
			t.Errorf("%d connections to 101 hosts", dials)
		}
	})
}

// TestIdleConnectionsOfAClient: a client that calls more hosts than connections may be idle
// loses its own. Those of another client stay, also to a host that both call.
func TestIdleConnectionsOfAClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dials int
		policy := inMemory(t, newAuthority(t), answering("HTTP/1.1 204 No Content\r\n\r\n"))
		dial := policy.Dial
		policy.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			dials++
			return dial(ctx, network, address)
		}
		client := newClientWith(t, policy, &egress.TransportOptions{MaxIdleConns: 10})
		send := func(of, host string) {
			ctx := egress.ContextWithClient(t.Context(), of)
			if err := post(ctx, client, "http://"+host+".example/", nil, readAll); err != nil {
				t.Error(err)
			}
			synctest.Wait()
		}
		for _, host := range []string{"one", "two", "shared"} {
			send("good", host)
		}
		for i := range 100 {
			send("greedy", fmt.Sprint("h", i))
		}
		send("greedy", "shared")
		send("good", "shared")
		for i := range 100 {
			send("greedy", fmt.Sprint("h", i))
		}
		dials = 0
		for _, host := range []string{"one", "two", "shared"} {
			send("good", host)
		}
		if dials != 0 {
			t.Errorf("%d of 3 connections were closed", dials)
		}
		for i := range 100 {
			send("greedy", fmt.Sprint("h", 99-i))
		}
		if want := 100 - (10 - 3); dials != want {
			t.Errorf("%d connections to 100 hosts again, want %d", dials, want)
		}
		client.CloseIdleConnections()
		synctest.Wait()
		if hosts, idle := egress.Pooled(client); hosts != 0 || idle != 0 {
			t.Errorf("%d hosts and %d idle connections are left", hosts, idle)
		}
	})
}

// TestSpellingsOfAHost: all spellings of a host and port have the same endpoint, and one pool.
func TestSpellingsOfAHost(t *testing.T) {
	policy := newStrict()
	policy.Dial, policy.Resolver = new(recorder).Dial, resolveTo(publicAddr)
	client := newClient(t, policy)
	for endpoint, urls := range map[string][]string{
		"[2a00::1]:443":     {"https://[2a00::1]", "https://[2A00:0::0:1]:443/", "https://[2a00::0.0.0.1]/"},
		"93.184.216.34:443": {"https://93.184.216.34", "https://[::ffff:93.184.216.34]/"},
		"a.example:8443":    {"https://a.example:8443", "https://A.Example:8443/"},
	} {
		for _, url := range urls {
			_, err := get(t, client, url)
			unreachable, ok := errors.AsType[*egress.UnreachableError](err)
			if !ok || unreachable.Endpoint != endpoint {
				t.Errorf("%s: %v, want the endpoint %s", url, err, endpoint)
			}
		}
	}
}

// TestEvictionDuringCalls: connections are evicted all the time, while other calls are about
// to take them. No call fails for that, and in the end nothing is left.
func TestEvictionDuringCalls(t *testing.T) {
	receiver := serve(t, nil, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	client := newClientWith(t, newLoopback(nil), &egress.TransportOptions{MaxIdleConns: 2})
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			ctx := egress.ContextWithClient(t.Context(), fmt.Sprint("client", i%3))
			for n := range 200 {
				url := receiver.at("http", fmt.Sprintf("h%d.%s", n%3, receiverName))
				if err := post(ctx, client, url, []byte("body"), readAll); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	awaitPooled(t, client, func(_, idle int) bool { return idle <= 2 })
	client.CloseIdleConnections()
	awaitPooled(t, client, func(hosts, idle int) bool { return hosts == 0 && idle == 0 })
}

// awaitPooled waits until the numbers of hosts and idle connections are as they should.
func awaitPooled(t *testing.T, client *http.Client, want func(hosts, idle int) bool) {
	t.Helper()
	for deadline := time.Now().Add(hostile.Limit); ; time.Sleep(time.Millisecond) {
		hosts, idle := egress.Pooled(client)
		if want(hosts, idle) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d hosts, %d idle connections", hosts, idle)
		}
	}
}

// TestUnusedConnections: a connection that was dialled for a call counts as idle if the call
// has taken another one, no matter which is ready first.
func TestUnusedConnections(t *testing.T) {
	for name, steps := range map[string]string{
		"during the call": "respond connect respond",
		"after the call":  "respond respond connect",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				respond, connect := make(chan struct{}), make(chan struct{})
				policy := inMemory(t, newAuthority(t), func(conn net.Conn) {
					for reader := bufio.NewReader(conn); ; {
						if _, err := http.ReadRequest(reader); err != nil {
							return
						}
						<-respond
						_, _ = io.WriteString(conn, "HTTP/1.1 204 No Content\r\n\r\n")
					}
				})
				dial, dials := policy.Dial, 0
				policy.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
					if dials++; dials == 2 {
						<-connect
					}
					return dial(ctx, network, address)
				}
				client := newClient(t, policy)
				results := make(chan error, 2)
				for range 2 {
					go func() { results <- post(t.Context(), client, "http://a.example/", nil, readAll) }()
					synctest.Wait() // the second one dials, and then takes the connection of the first
				}
				for step := range strings.FieldsSeq(steps) {
					map[string]chan struct{}{"respond": respond, "connect": connect}[step] <- struct{}{}
					synctest.Wait()
				}
				if err := cmp.Or(<-results, <-results); err != nil {
					t.Fatal(err)
				}
				if hosts, idle := egress.Pooled(client); hosts != 1 || idle != 2 || dials != 2 {
					t.Errorf("%d hosts, and %d idle connections of %d", hosts, idle, dials)
				}
				client.CloseIdleConnections()
				synctest.Wait()
				if hosts, idle := egress.Pooled(client); hosts != 0 || idle != 0 {
					t.Errorf("%d hosts and %d idle connections are left", hosts, idle)
				}
			})
		})
	}
}

// TestTraceOfEarlyHints: if a trace has Got1xxResponse, net/http reads any number of 1xx
// responses, so we leave that out. The other functions of the trace are called.
func TestTraceOfEarlyHints(t *testing.T) {
	receiver := serve(t, nil, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", strings.Repeat("x", 1000))
		for range 100 {
			w.WriteHeader(http.StatusEarlyHints)
		}
	}))
	var hints, conns, idle int
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
		GotConn:        func(httptrace.GotConnInfo) { conns++ },
		PutIdleConn:    func(error) { idle++ },
		Got1xxResponse: func(int, textproto.MIMEHeader) error { hints++; return nil },
	})
	client := newClient(t, newLoopback(nil))
	if err := post(ctx, client, receiver.at("http", receiverName), nil, readAll); err == nil || hints > 0 {
		t.Errorf("%v after %d early hints", err, hints)
	}
	other := serve(t, nil, http.NotFoundHandler())
	if err := post(ctx, client, other.at("http", receiverName), nil, readAll); err != nil || conns != 2 || idle != 1 {
		t.Errorf("%v; %d connections, %d idle", err, conns, idle)
	}
}

// TestResponseHasTLS: a response tells how its connection is secured.
func TestResponseHasTLS(t *testing.T) {
	ca := newAuthority(t)
	receiver := serve(t, ca, http.NotFoundHandler())
	client := newClient(t, newLoopback(ca))
	for range 2 {
		resp, err := get(t, client, receiver.at("https", receiverName))
		if err != nil {
			t.Fatal(err)
		}
		if resp.TLS == nil || len(resp.TLS.VerifiedChains) == 0 {
			t.Errorf("%+v", resp.TLS)
		}
		_ = resp.Body.Close()
	}
}
