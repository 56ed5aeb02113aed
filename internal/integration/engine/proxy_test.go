package engine_test

import (
	"bufio"
	"fmt"
	"net"
	"runtime"
	"testing"

	"example.com/go-webhookcfg/internal/integration/engine"
)

// echo is a server that says every line back, and counts those that reached it.
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
		"requests": {engine.Requests, 2},
		"answers":  {engine.Responses, 3},
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
				t.Errorf("%d answers, %d requests that reached the server, %d lost; want 2, %d, 1", sent, len(reached), proxy.Lost(), test.reaches)
			}
		})
	}
}

// TestProxyHolds: what is held reaches the server after its sender has hung up, and
// after what others have sent since.
func TestProxyHolds(t *testing.T) {
	reached := make(chan string, 10)
	proxy := engine.NewProxy(t, echo(t, reached))
	proxy.Lose(engine.Requests, engine.Hold, func(n int) bool { return n == 1 })
	say := func(word string) net.Conn {
		conn, err := net.Dial("tcp4", proxy.Addr())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fprintln(conn, word); err != nil {
			t.Fatal(err)
		}
		return conn
	}
	early := say("early")
	for proxy.Lost() == 0 { // it is on its way
		runtime.Gosched()
	}
	if err := early.Close(); err != nil {
		t.Fatal(err)
	}
	late := say("late")
	defer late.Close()
	if word := <-reached; word != "late" {
		t.Errorf("%s came first", word)
	}
	proxy.Release()
	if len(reached) != 1 || <-reached != "early" {
		t.Error("what was held is not there")
	}
}
