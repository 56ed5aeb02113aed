package mounts

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
	"github.com/google/go-cmp/cmp"
)

type engine struct {
	name  string
	mount func(h *webhookcfg.Handler) any
}

// fibers are the mounts whose requests don't come from net/http. nativeMount stands for the
// others.
var (
	fibers = []engine{
		{"fiber v2", func(h *webhookcfg.Handler) any { return Fiber2(h) }},
		{"fiber v3", func(h *webhookcfg.Handler) any { return Fiber3(h) }},
	}
	nativeMount = engine{"net/http", func(h *webhookcfg.Handler) any { return ServeMux(h) }}
)

// TestFiberMemory: fiber reuses the memory of a request for the next one on the connection.
// The store must not keep it.
func TestFiberMemory(t *testing.T) {
	for _, m := range fibers {
		st := newRecorder()
		conn := dial(t, serve(t, m.mount(newHandler(t, st, options()))))
		r := bufio.NewReader(conn)
		var want []string
		for i := range 3 {
			exchange(t, conn, r, text("DELETE", fmt.Sprintf("%s/entity-%d", configure, i), ""))
			exchange(t, conn, r, text("GET", "/"+strings.Repeat("x", 100), ""))
			want = append(want, fmt.Sprintf("unset entity entity-%d", i))
		}
		if diff := cmp.Diff(want, st.take()); diff != "" {
			t.Errorf("%s: -want +got:\n%s", m.name, diff)
		}
	}
}

// TestTwoAuthorizations: if there are several fields, fiber passes on the last one.
// Everywhere else, two credentials count as none.
func TestTwoAuthorizations(t *testing.T) {
	const wrong = "Authorization: Basic eDp5"
	right := text("DELETE", configure+"/e1", "", "Connection: close")
	rightLast := strings.Replace(right, "Host: test\r\n", "Host: test\r\n"+wrong+"\r\n", 1)
	rightFirst := text("DELETE", configure+"/e1", "", "Connection: close", wrong)
	h := newHandler(t, newRecorder(), options())
	for _, m := range append(fibers, nativeMount) {
		address := serve(t, m.mount(h))
		want := http.StatusOK
		if m.name == nativeMount.name {
			want = http.StatusUnauthorized
		}
		if got := raw(t, address, rightLast).Status; got != want {
			t.Errorf("%s, the right one last: got %d, want %d", m.name, got, want)
		}
		if got := raw(t, address, rightFirst).Status; got != http.StatusUnauthorized {
			t.Errorf("%s, the wrong one last: got %d", m.name, got)
		}
	}
}

// stuck is a store whose Apply waits until its context ends.
type stuck struct {
	*store.Memory
	entered chan struct{} // receives a value for each Apply
	ended   chan error    // why the context ended
}

func newStuck() *stuck {
	return &stuck{store.NewMemory(), make(chan struct{}, 1), make(chan error, 1)}
}

func (s *stuck) Apply(ctx context.Context, _ webhookcfg.Change) error {
	s.entered <- struct{}{}
	<-ctx.Done()
	s.ended <- ctx.Err()
	return errors.New("stuck on purpose")
}

// TestDisconnect: net/http cancels the request of a client that disconnected. On fiber it
// goes on until Options.Timeout.
func TestDisconnect(t *testing.T) {
	var disconnect func(m engine, timeout time.Duration) error
	disconnect = func(m engine, timeout time.Duration) error {
		st := newStuck()
		o := options()
		o.Timeout = timeout
		conn := dial(t, serve(t, m.mount(newHandler(t, st, o))))
		if _, err := io.WriteString(conn, text("DELETE", configure, "")); err != nil {
			t.Fatal(err)
		}
		responded := make(chan struct{})
		go func() {
			defer close(responded)
			_, _ = conn.Read(make([]byte, 1))
		}()
		select {
		case <-st.entered:
		case <-responded: // a busy machine reaches the store too late
			if timeout > time.Minute {
				t.Fatalf("%s: a response although the store was not reached", m.name)
			}
			return disconnect(m, 2*timeout)
		}
		conn.Close()
		return <-st.ended
	}
	if err := disconnect(nativeMount, time.Minute); !errors.Is(err, context.Canceled) {
		t.Errorf("net/http: got %v", err)
	}
	for _, m := range fibers {
		if err := disconnect(m, time.Second/2); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: got %v", m.name, err)
		}
	}
}
