package deliver_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"example.com/go-webhookcfg/webhookcfg/deliver"
)

// TestConnectionReuse: connections are reused, whatever the outcome.
func TestConnectionReuse(t *testing.T) {
	for _, tls := range []bool{false, true} {
		codes := []int{200, 500, 404, 204, 302, 410, 200}
		var n int
		r := newReceiver(t, tls, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(codes[n])
			if codes[n] != 204 {
				fmt.Fprint(w, strings.Repeat("x", 4000))
			}
		})
		s := newSender(t, configured(t, r.URL), keyring{deliver.NewKey()}, &deliver.Options{Policy: policy(r)})
		for n = range codes {
			if result := s.Send(t.Context(), "acme", "e1", message); result.Status != codes[n] {
				t.Errorf("status %d: %v", codes[n], result.Err)
			}
		}
		if r.connections() != 1 {
			t.Errorf("TLS %v: %d connections for %d messages", tls, r.connections(), len(codes))
		}
	}
}

// TestStaleConnection: a receiver that closes an idle connection just as it is used has not
// failed. Its message is sent again over a new connection.
func TestStaleConnection(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var heads []string
	var all sync.WaitGroup
	serve := func(conn net.Conn) {
		defer func() { _ = conn.Close() }()
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
	all.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			all.Go(func() { serve(conn) })
		}
	})
	s := newSender(t, configured(t, "http://"+listener.Addr().String()), keyring{deliver.NewKey()}, nil)
	for range 2 {
		check(t, "send", s.Send(t.Context(), "acme", "e1", message), deliver.Delivered, "")
	}
	s.CloseIdleConnections()
	_ = listener.Close()
	all.Wait()
	if len(heads) != 3 || heads[1] != heads[2] {
		t.Errorf("the requests were %q", heads)
	}
	if slices.ContainsFunc(heads, func(head string) bool { return strings.Contains(head, "Idempotency") }) {
		t.Errorf("there is a field that is not of Standard Webhooks: %q", heads)
	}
}

// TestGoingAway: a receiver that ends its HTTP/2 connection after each response has not
// failed.
func TestGoingAway(t *testing.T) {
	r := newReceiver(t, true, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close") // sends GOAWAY
	})
	s := newSender(t, configured(t, r.URL), keyring{deliver.NewKey()}, &deliver.Options{Policy: policy(r)})
	for range 3 {
		check(t, "send", s.Send(t.Context(), "acme", "e1", message), deliver.Delivered, "")
	}
	if len(r.received()) != 3 {
		t.Errorf("%d requests for 3 messages", len(r.received()))
	}
}

// TestResetStream: one stream that is reset over HTTP/2 fails alone.
func TestResetStream(t *testing.T) {
	arrived, release := make(chan struct{}), make(chan struct{})
	r := newReceiver(t, true, func(_ http.ResponseWriter, req *http.Request) {
		switch req.URL.Path {
		case "/reset":
			panic(http.ErrAbortHandler)
		case "/slow":
			close(arrived)
			<-release
		}
	})
	opts := &deliver.Options{Policy: policy(r)}
	st := configured(t, r.URL+"/slow")
	s := newSender(t, st, keyring{deliver.NewKey()}, opts)
	slow := make(chan deliver.Result, 1)
	go func() { slow <- s.Send(t.Context(), "acme", "e1", message) }()
	<-arrived
	set(t, st, r.URL+"/reset")
	check(t, "reset", s.Send(t.Context(), "acme", "e1", message), deliver.Failed, deliver.ReasonUnreachable)
	close(release)
	check(t, "slow", <-slow, deliver.Delivered, "")
	set(t, st, r.URL+"/")
	check(t, "next", s.Send(t.Context(), "acme", "e1", message), deliver.Delivered, "")
	if r.connections() != 1 {
		t.Errorf("%d connections", r.connections())
	}
}
