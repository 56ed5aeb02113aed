package egress_test

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/webhookcfg/egress"
)

// Types of HTTP/2 frames (RFC 9113, section 6).
const (
	frameData, frameHeaders, frameReset   = 0x0, 0x1, 0x3
	frameSettings, framePing, frameGoAway = 0x4, 0x6, 0x7
)

// farewell is when a receiver says GOAWAY. It never closes a connection.
type farewell string

const (
	beforeRequest farewell = "before a request"
	afterReset    farewell = "after a reset"
	afterResponse farewell = "after a response"
	afterBody     farewell = "after a response with a body"
	afterRefusal  farewell = "after a response, before which a stream was refused"
)

// goingAway is a network with receivers that speak HTTP/2, for tests with a fake clock.
type goingAway struct {
	pipes
	farewell farewell
	config   *tls.Config

	mu         sync.Mutex
	open, most int
}

func newGoingAway(t *testing.T, when farewell) (*goingAway, *egress.Policy) {
	ca := newAuthority(t)
	g := &goingAway{pipes: make(pipes), farewell: when, config: ca.valid(t, "*.receiver.example")}
	g.config.NextProtos = []string{"h2"}
	go func() {
		for {
			conn, err := g.Accept()
			if err != nil {
				return
			}
			go g.serve(conn)
		}
	}()
	t.Cleanup(func() { _ = g.Close() })
	policy := newStrict()
	policy.Resolver, policy.RootCAs, policy.Dial = resolveTo(publicAddr), ca.pool(), g.Dial
	return g, policy
}

// counts returns the number of connections, and the largest one so far.
func (g *goingAway) counts() (open, most int) {
	synctest.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.open, g.most
}

func (g *goingAway) serve(conn net.Conn) {
	g.mu.Lock()
	g.open++
	g.most = max(g.most, g.open)
	g.mu.Unlock()
	defer func() {
		g.mu.Lock()
		g.open--
		g.mu.Unlock()
		_ = conn.Close()
	}()
	secured := tls.Server(conn, g.config)
	if _, err := io.ReadFull(secured, make([]byte, len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))); err != nil {
		return
	}
	// A pipe has no buffer, and neither side may wait for the other.
	out := make(chan string, 100)
	defer close(out)
	go func() {
		for frame := range out {
			time.Sleep(time.Millisecond) // the sender deals with one before the next
			_, _ = io.WriteString(secured, frame)
		}
	}()
	send := func(kind, flags byte, stream uint32, payload string) {
		head := binary.BigEndian.AppendUint32(nil, uint32(len(payload))<<8|uint32(kind))
		head = binary.BigEndian.AppendUint32(append(head, flags), stream)
		out <- string(head) + payload
	}
	goAway := func() { send(frameGoAway, 0, 0, "\x7f\xff\xff\xff\x00\x00\x00\x00") }
	send(frameSettings, 0, 0, "")
	if g.farewell == beforeRequest {
		goAway()
	}
	for {
		var head [9]byte
		if _, err := io.ReadFull(secured, head[:]); err != nil {
			return
		}
		payload := make([]byte, binary.BigEndian.Uint32(head[:4])>>8)
		if _, err := io.ReadFull(secured, payload); err != nil {
			return
		}
		stream := binary.BigEndian.Uint32(head[5:])
		switch {
		case head[3] == frameHeaders && g.farewell == afterRefusal && stream == 1:
			send(frameReset, 0, stream, "\x00\x00\x00\x07")
		case head[3] == frameHeaders && g.farewell == afterBody:
			send(frameHeaders, 0x4, stream, "\x88") // 200
			send(frameData, 0x1, stream, "body")
			goAway()
		case head[3] == frameHeaders && g.farewell != afterReset:
			send(frameHeaders, 0x5, stream, "\x88")
			goAway()
		case head[3] == frameReset && g.farewell == afterReset:
			goAway()
		case head[3] == framePing && head[4] == 0:
			send(framePing, 0x1, 0, string(payload))
		}
	}
}

func newClientWith(t *testing.T, policy *egress.Policy, opts *egress.TransportOptions) *http.Client {
	t.Helper()
	client, err := policy.Client(opts)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// TestLostConnectionsAreClosed: no connections accumulate of which net/http has lost track.
func TestLostConnectionsAreClosed(t *testing.T) {
	for _, when := range []farewell{beforeRequest, afterReset, afterResponse, afterBody, afterRefusal} {
		t.Run(string(when), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				network, policy := newGoingAway(t, when)
				policy.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
					time.Sleep(time.Second)
					return network.Dial(ctx, "", "")
				}
				client := newClientWith(t, policy, nil)
				for range 5 {
					ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
					if when == beforeRequest {
						time.AfterFunc(time.Second/2, cancel) // net/http keeps the connection
					}
					err := post(ctx, client, "https://h0.receiver.example/", nil, readAll)
					cancel()
					if (err != nil) != (when == beforeRequest || when == afterReset) {
						t.Error(err)
					}
					time.Sleep(6 * time.Second)
					if open, most := network.counts(); open != 1 || most > 2 {
						t.Errorf("%d connections, at most %d", open, most)
					}
				}
				client.CloseIdleConnections()
				if open, _ := network.counts(); open > 0 {
					t.Errorf("%d connections after CloseIdleConnections", open)
				}
			})
		})
	}
}

// TestLostConnectionsAreLimited sends to many hosts, each of which leaves a connection of
// which net/http loses track.
func TestLostConnectionsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network, policy := newGoingAway(t, afterResponse)
		client := newClientWith(t, policy, &egress.TransportOptions{MaxIdleConns: 20})
		for host := range 50 {
			if err := post(t.Context(), client, fmt.Sprintf("https://h%d.receiver.example/", host), nil, readAll); err != nil {
				t.Error(err)
			}
			time.Sleep(1100 * time.Millisecond)
		}
		if _, most := network.counts(); most < 20 || most > 22 {
			t.Errorf("%d connections were open", most)
		}
		client.CloseIdleConnections()
	})
}

// receiverHTTP2 is a receiver that responds to /slow-header and /slow-body after, or within,
// ten seconds of a fake clock.
type receiverHTTP2 struct {
	pipes
	policy *egress.Policy // with which it is called
	dials  atomic.Int32
}

// newReceiverHTTP2 returns a receiver that allows a number of streams on each connection.
func newReceiverHTTP2(t *testing.T, streams int) *receiverHTTP2 {
	t.Helper()
	ca := newAuthority(t)
	r := &receiverHTTP2{pipes: make(pipes), policy: newStrict()}
	server := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/slow-body" {
				w.WriteHeader(http.StatusOK)
				_ = http.NewResponseController(w).Flush()
			}
			if r.URL.Path != "/" {
				time.Sleep(10 * time.Second)
			}
			_, _ = io.WriteString(w, "done")
		}),
		TLSConfig: ca.valid(t, "*.receiver.example"),
		HTTP2:     &http.HTTP2Config{MaxConcurrentStreams: streams},
	}
	go func() { _ = server.ServeTLS(r, "", "") }()
	t.Cleanup(func() { _ = server.Close() })
	r.policy.Resolver, r.policy.RootCAs = resolveTo(publicAddr), ca.pool()
	r.policy.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		r.dials.Add(1)
		return r.Dial(ctx, network, address)
	}
	return r
}

// get calls a host, and expects a response.
func (r *receiverHTTP2) get(t *testing.T, client *http.Client, host, path string) {
	err := post(t.Context(), client, "https://"+host+".receiver.example"+path, nil, func(resp *http.Response) error {
		body, _, err := egress.ReadBody(resp, 100)
		if resp.ProtoMajor != 2 || string(body) != "done" {
			t.Errorf("%s%s: the response is %q over %s", host, path, body, resp.Proto)
		}
		return err
	})
	if err != nil {
		t.Errorf("%s%s: %v", host, path, err)
	}
}

// TestConnectionsInUseStayOpen has a receiver that allows one stream for each connection,
// so that another request needs another one.
func TestConnectionsInUseStayOpen(t *testing.T) {
	for _, slow := range []string{"/slow-header", "/slow-body"} {
		t.Run(slow, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				receiver := newReceiverHTTP2(t, 1)
				client := newClientWith(t, receiver.policy, nil)
				defer client.CloseIdleConnections()
				receiver.get(t, client, "h0", "/") // now the sender knows the limit
				time.Sleep(2 * time.Second)
				var slowly sync.WaitGroup
				slowly.Go(func() { receiver.get(t, client, "h0", slow) })
				time.Sleep(2 * time.Second)
				receiver.get(t, client, "h0", "/")
				client.CloseIdleConnections()
				slowly.Wait()
				if n := receiver.dials.Load(); n != 2 {
					t.Errorf("%d connections", n)
				}
				time.Sleep(10 * time.Second)
				receiver.get(t, client, "h0", "/")
				if n := receiver.dials.Load(); n != 2 {
					t.Errorf("%d connections, one of which was idle", n)
				}
			})
		})
	}
}

// TestNewConnectionsStayOpen opens many connections to a host at the same time, of which
// net/http uses one.
func TestNewConnectionsStayOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		receiver := newReceiverHTTP2(t, 100)
		dial := receiver.policy.Dial
		receiver.policy.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			time.Sleep(time.Second)
			return dial(ctx, network, address)
		}
		client := newClientWith(t, receiver.policy, nil)
		defer client.CloseIdleConnections()
		for host := range 5 {
			var all sync.WaitGroup
			for range 16 {
				all.Go(func() { receiver.get(t, client, fmt.Sprint("h", host), "/") })
			}
			all.Wait()
		}
	})
}

// TestRecentlyUsedConnectionsStayOpen: a connection becomes idle while another one is being
// opened because it was in use. Then net/http closes the other one.
func TestRecentlyUsedConnectionsStayOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		receiver := newReceiverHTTP2(t, 1)
		dial := receiver.policy.Dial
		var dials atomic.Int32
		var closed [2]atomic.Bool
		receiver.policy.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			time.Sleep(time.Second)
			conn, err := dial(ctx, network, address)
			i := dials.Add(1) - 1
			return countedConn{conn, func() { closed[i].Store(true) }}, err
		}
		client := newClientWith(t, receiver.policy, nil)
		defer client.CloseIdleConnections()
		receiver.get(t, client, "h0", "/")
		var slowly sync.WaitGroup
		slowly.Go(func() { receiver.get(t, client, "h0", "/slow-header") })
		time.Sleep(9500 * time.Millisecond)
		receiver.get(t, client, "h0", "/")
		slowly.Wait()
		synctest.Wait()
		if dials.Load() != 2 || closed[0].Load() || !closed[1].Load() {
			t.Errorf("%d connections; the first one was closed: %v, the second: %v", dials.Load(), closed[0].Load(), closed[1].Load())
		}
	})
}

// TestConnectionsInUseDoNotCount: MaxIdleConns bounds the idle connections next to those
// in use.
func TestConnectionsInUseDoNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		receiver := newReceiverHTTP2(t, 100)
		client := newClientWith(t, receiver.policy, &egress.TransportOptions{MaxIdleConns: 2})
		defer client.CloseIdleConnections()
		var slowly sync.WaitGroup
		for _, host := range []string{"a", "b", "c"} {
			slowly.Go(func() { receiver.get(t, client, host, "/slow-header") })
			time.Sleep(time.Second) // a new connection is not in use until its request has it
		}
		for range 2 {
			receiver.get(t, client, "d", "/")
			receiver.get(t, client, "e", "/")
		}
		slowly.Wait()
		if n := receiver.dials.Load(); n != 5 {
			t.Errorf("%d connections to 5 hosts", n)
		}
	})
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

// TestIdleConnectionsOverHTTP1 sends to hosts in turn, and then in the reverse order, a
// number of requests at the same time to each.
func TestIdleConnectionsOverHTTP1(t *testing.T) {
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
			synctest.Test(t, func(t *testing.T) {
				ca, network := newAuthority(t), make(pipes)
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
					Protocols: new(http.Protocols),
				}
				server.Protocols.SetHTTP1(true)
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

// TestIdleHTTP2ConnectionsAreLimited sends to many hosts. The limit of net/http does not
// apply to HTTP/2.
func TestIdleHTTP2ConnectionsAreLimited(t *testing.T) {
	ca := newAuthority(t)
	receiver := httptest.NewUnstartedServer(http.NotFoundHandler())
	receiver.TLS, receiver.EnableHTTP2 = ca.valid(t, "*.receiver.example"), true
	receiver.StartTLS()
	defer receiver.Close()
	var dials, open, most atomic.Int64
	policy := newStrict()
	policy.Resolver, policy.RootCAs = resolveTo(publicAddr), ca.pool()
	policy.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, receiver.Listener.Addr().String())
		dials.Add(1)
		most.Store(max(most.Load(), open.Add(1)))
		return countedConn{conn, sync.OnceFunc(func() { open.Add(-1) })}, err
	}
	client := newClientWith(t, policy, &egress.TransportOptions{MaxIdleConns: 20})
	defer client.CloseIdleConnections()
	send := func(host int) {
		t.Helper()
		if err := post(t.Context(), client, fmt.Sprintf("https://h%d.receiver.example/", host), nil, readSome); err != nil {
			t.Fatal(err)
		}
	}
	for host := range 50 {
		send(host)
	}
	// Some more were in use: that of a response that was read is, until a goroutine has run.
	if most.Load() > 20+10 {
		t.Errorf("%d connections were open", most.Load())
	}
	for host := range 30 {
		client.CloseIdleConnections()
		send(host)
	}
	before := dials.Load()
	for host := range 10 {
		send(100 + host)
	}
	for host := range 10 {
		send(100 + host)
	}
	if n := dials.Load() - before; n != 10 {
		t.Errorf("%d connections to 10 hosts", n)
	}
}

type countedConn struct {
	net.Conn
	closed func()
}

func (c countedConn) Close() error {
	c.closed()
	return c.Conn.Close()
}
