package deliver_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// Most of these tests run in bubbles of package synctest, over connections in memory:
// on a busy machine with a real clock, net/http may close a connection instead of reusing
// it, and a body may arrive too late.

// TestConnectionReuse: connections are reused, whatever the outcome.
func TestConnectionReuse(t *testing.T) {
	codes := []int{200, 500, 404, 204, 302, 410, 200}
	synctest.Test(t, func(t *testing.T) {
		var n, dialled int
		receive := dialTo(afterRequest(func(conn net.Conn) {
			response := http.Response{StatusCode: codes[n], ProtoMajor: 1, ProtoMinor: 1}
			if codes[n] != 204 {
				response.ContentLength, response.Body = 4000, io.NopCloser(strings.NewReader(strings.Repeat("x", 4000)))
			}
			_ = response.Write(conn)
		}))
		s := newSender(t, configured(t, "http://example.com"), keyring{deliver.GenerateKey()}, &deliver.Options{
			Policy: policyInMemory(func(ctx context.Context, network, address string) (net.Conn, error) {
				dialled++
				return receive(ctx, network, address)
			}),
		})
		for n = range codes {
			if result := s.Send(t.Context(), "acme", "e1", message); result.Status != codes[n] {
				t.Errorf("status %d: %v", codes[n], result.Err)
			}
			synctest.Wait()
		}
		if dialled != 1 {
			t.Errorf("%d connections for %d messages", dialled, len(codes))
		}
	})
}

// TestConnectionsOfAnotherClient: a client with many hosts doesn't make the sender close the
// connections of another one.
func TestConnectionsOfAnotherClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dialled := 0
		receive := dialTo(afterRequest(func(conn net.Conn) { _, _ = io.WriteString(conn, "HTTP/1.1 204 No Content\r\n\r\n") }))
		st := configured(t, "http://example.com")
		for n := range 20 {
			url := egress.NewURL(fmt.Sprintf("http://example.com:%d/", 8000+n))
			hooktest.Apply(t, st, webhookcfg.SetChange("greedy", webhookcfg.Entity(fmt.Sprint("e", n)), url))
		}
		s := newSender(t, st, keyring{deliver.GenerateKey()}, &deliver.Options{
			Transport: egress.TransportOptions{MaxIdleConns: 5},
			Policy: policyInMemory(func(ctx context.Context, network, address string) (net.Conn, error) {
				dialled++
				return receive(ctx, network, address)
			}),
		})
		send := func(client, entity string) {
			check(t, client, s.Send(t.Context(), client, entity, message), deliver.Delivered, "")
			synctest.Wait()
		}
		send("acme", "e1")
		for n := range 20 {
			send("greedy", fmt.Sprint("e", n))
		}
		dialled = 0
		send("acme", "e1")
		if dialled != 0 {
			t.Error("the connection of the other client was closed")
		}
	})
}

// TestStaleConnection: a receiver that closes an idle connection just as it is used has not
// failed. Its message is sent again over a new connection.
func TestStaleConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var heads []string
		serve := func(conn net.Conn) {
			reader := bufio.NewReader(conn)
			for requests := range 2 { // closes without a response to the second
				req, err := http.ReadRequest(reader)
				if err != nil {
					return
				}
				_, _ = io.Copy(io.Discard, req.Body)
				mu.Lock()
				var head strings.Builder
				_ = req.Header.Write(&head)
				heads = append(heads, head.String())
				mu.Unlock()
				if requests == 0 {
					fmt.Fprint(conn, "HTTP/1.1 204 No Content\r\n\r\n")
				}
			}
		}
		s := newSender(t, configured(t, "http://example.com"), keyring{deliver.GenerateKey()}, &deliver.Options{Policy: policyInMemory(dialTo(serve))})
		for range 2 {
			check(t, "send", s.Send(t.Context(), "acme", "e1", message), deliver.Delivered, "")
			synctest.Wait() // the connection is idle
		}
		mu.Lock()
		defer mu.Unlock()
		if len(heads) != 3 || heads[1] != heads[2] {
			t.Errorf("the requests were %q", heads)
		}
		if slices.ContainsFunc(heads, func(head string) bool { return strings.Contains(head, "Idempotency") }) {
			t.Errorf("there is a field that is not of Standard Webhooks: %q", heads)
		}
	})
}

// countedConn counts the bytes that are read.
type countedConn struct {
	net.Conn
	read *atomic.Int64
}

func (c countedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.read.Add(int64(n))
	return n, err
}

// TestBodyIsCutOff: a body without end isn't read on once the delivery has ended.
func TestBodyIsCutOff(t *testing.T) {
	ended := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		defer close(ended)
		for {
			if _, err := w.Write(make([]byte, 10_000)); err != nil {
				return
			}
		}
	}))
	t.Cleanup(server.Close)
	var read atomic.Int64
	policy := egress.Development()
	policy.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		return countedConn{conn, &read}, err
	}
	sender := newSender(t, configured(t, server.URL), keyring{deliver.GenerateKey()}, &deliver.Options{Policy: policy})
	if r := sender.Send(t.Context(), "acme", "e1", deliver.Message{ID: "m", Body: []byte("{}")}); r.Outcome != deliver.Delivered {
		t.Error(r.Err)
	}
	<-ended
	if n := read.Load(); n > 64<<10 {
		t.Errorf("%d bytes were read", n)
	}
}
