package egress_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

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

// TestMemoryOfFailedHosts: after 2500 hosts whose connections never become idle, a transport
// uses no more memory than after 1000.
func TestMemoryOfFailedHosts(t *testing.T) {
	for _, test := range []struct {
		name string
		dial func(t *testing.T) *egress.Policy
	}{
		{"dial fails", func(*testing.T) *egress.Policy {
			policy := newStrict()
			policy.AllowHTTP, policy.Resolver, policy.Dial = true, resolveTo(publicAddr), new(failingDialer).Dial
			return policy
		}},
		{"response closes", func(t *testing.T) *egress.Policy {
			return inMemory(t, newAuthority(t), answering("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"))
		}},
		{"body isn't read", func(t *testing.T) *egress.Policy {
			return inMemory(t, newAuthority(t), answering("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"))
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			client := newClient(t, test.dial(t))
			hosts := 0
			heapAfter := func(more int) int {
				for range more {
					hosts++
					resp, err := client.Get(fmt.Sprintf("http://h%d.example/", hosts))
					if err == nil {
						_ = resp.Body.Close()
					}
				}
				var m runtime.MemStats
				runtime.GC()
				runtime.GC()
				runtime.ReadMemStats(&m)
				return int(m.HeapAlloc)
			}
			before := heapAfter(1000)
			if more := heapAfter(1500) - before; more > 1<<19 {
				t.Errorf("%d bytes for 1500 hosts", more)
			}
			runtime.KeepAlive(client)
		})
	}
}

type failingDialer struct{}

func (*failingDialer) Dial(context.Context, string, string) (net.Conn, error) { return nil, errDialled }

// TestIdleConnectionsAreKept: hosts that respond don't count as failing. Failing hosts cost
// the others one connection at most.
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
		const failing = 1000
		send("good", 80)
		for i := range failing {
			send(fmt.Sprint("bad", i), 81)
			send(fmt.Sprint("another", i%100), 80)
		}
		send("good", 80)
		if dials != 101 {
			t.Errorf("%d connections to 101 hosts", dials)
		}
		for range 2 {
			send("bad", 81)
			send("good", 80)
		}
		if dials != 102 {
			t.Errorf("%d connections to 101 hosts, and one again", dials)
		}
	})
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
