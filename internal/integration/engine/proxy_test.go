package engine_test

import (
	"bufio"
	"fmt"
	"net"
	"runtime"
	"testing"

	"example.com/go-webhookcfg/internal/integration/engine"
)

// echo starts a server that returns every line, and sends those that reached it on a
// channel.
func echo(t *testing.T, reached chan<- string) string {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				for lines := bufio.NewScanner(conn); lines.Scan(); {
					reached <- lines.Text()
					_, _ = fmt.Fprintln(conn, lines.Text())
				}
			}()
		}
	}()
	return listener.Addr().String()
}

func TestProxyLoses(t *testing.T) {
	for name, test := range map[string]struct {
		direction engine.Direction
		reaches   int
	}{
		"requests":  {engine.Requests, 2},
		"responses": {engine.Responses, 3},
	} {
		t.Run(name, func(t *testing.T) {
			reached := make(chan string, 10)
			proxy := engine.NewProxy(t, echo(t, reached))
			proxy.Lose(test.direction, engine.Cut, func(n int) bool { return n == 3 })
			conn, err := net.Dial("tcp4", proxy.Addr())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			lines := bufio.NewScanner(conn)
			sent := 0
			for {
				if _, err := fmt.Fprintln(conn, sent); err != nil || !lines.Scan() {
					break
				}
				sent++
			}
			if sent != 2 || len(reached) != test.reaches || proxy.Lost() != 1 {
				t.Errorf("%d responses, %d requests that reached the server, %d lost; want 2, %d, 1", sent, len(reached), proxy.Lost(), test.reaches)
			}
		})
	}
}

// TestProxyHolds checks that held data reaches the server after its sender has
// disconnected, and after later data of other senders.
func TestProxyHolds(t *testing.T) {
	reached := make(chan string, 10)
	proxy := engine.NewProxy(t, echo(t, reached))
	proxy.Lose(engine.Requests, engine.Hold, func(n int) bool { return n == 1 })
	send := func(word string) net.Conn {
		conn, err := net.Dial("tcp4", proxy.Addr())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fprintln(conn, word); err != nil {
			t.Fatal(err)
		}
		return conn
	}
	early := send("early")
	for proxy.Lost() == 0 { // until the proxy holds it
		runtime.Gosched()
	}
	if err := early.Close(); err != nil {
		t.Fatal(err)
	}
	late := send("late")
	defer late.Close()
	if word := <-reached; word != "late" {
		t.Errorf("%s arrived first", word)
	}
	proxy.Release()
	if len(reached) != 1 || <-reached != "early" {
		t.Error("held data did not arrive")
	}
}
