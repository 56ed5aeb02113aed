package cache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
)

// resolveFunc is a store whose Resolve is a function.
type resolveFunc func(ctx context.Context, client, entity string) (webhookcfg.Webhook, error)

func (f resolveFunc) Resolve(ctx context.Context, client, entity string) (webhookcfg.Webhook, error) {
	return f(ctx, client, entity)
}

func (resolveFunc) Apply(context.Context, webhookcfg.Change) error { return nil }

// TestNoClientIsLeft: clients about whom nothing could be read take no memory.
func TestNoClientIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := New(resolveFunc(func(ctx context.Context, client, _ string) (webhookcfg.Webhook, error) {
			switch client {
			case "fails":
				return webhookcfg.Webhook{}, errors.New("down")
			case "hangs":
				<-ctx.Done()
				return webhookcfg.Webhook{}, ctx.Err()
			}
			return webhookcfg.Webhook{}, nil
		}), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		for _, client := range []string{"fails", "hangs", "changes"} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if _, err := c.Resolve(ctx, client, "e1"); err == nil && client != "changes" {
				t.Errorf("%s: no error", client)
			}
			cancel()
		}
		if err := c.Store().Apply(t.Context(), webhookcfg.UnsetChange("changes", webhookcfg.All())); err != nil {
			t.Error(err)
		}
		time.Sleep(readTimeout)
		synctest.Wait()
		c.clients.mu.Lock()
		defer c.clients.mu.Unlock() // before Close
		if left := c.clients; len(left.byName) > 0 || len(left.bySize) > 0 || len(left.reading) > 0 || len(left.changing) > 0 || left.size != 0 {
			t.Errorf("left: %v, %d in the heap, %v, %v, %d entries", left.byName, len(left.bySize), left.reading, left.changing, left.size)
		}
	})
}

// TestNoReadIsLeft: a read that waits for its turn ends when its callers have left, whatever
// ended their contexts, and never reaches the store.
func TestNoReadIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		c, err := New(resolveFunc(func(ctx context.Context, _, _ string) (webhookcfg.Webhook, error) {
			calls.Add(1)
			<-ctx.Done()
			return webhookcfg.Webhook{}, ctx.Err()
		}), &Options{MaxReads: 4})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		resolve := func(ctx context.Context, want error) {
			for n := range 300 {
				go func() {
					_, err := c.Resolve(ctx, fmt.Sprint("client ", n/10), fmt.Sprint("e", n/2))
					if !errors.Is(err, want) {
						t.Errorf("got %v, want %v", err, want)
					}
				}()
			}
			synctest.Wait()
		}
		canceled, cancel := context.WithCancel(t.Context())
		resolve(canceled, context.Canceled)
		late, cancelLate := context.WithTimeout(t.Context(), time.Second)
		defer cancelLate()
		resolve(late, context.DeadlineExceeded)
		cancel()
		<-late.Done()
		synctest.Wait()
		left := 0
		c.clients.mu.Lock()
		for _, of := range c.clients.reading {
			left += of.count
		}
		c.clients.mu.Unlock()
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		if waiting := bytes.Count(stacks, []byte("(*Cache).fetch(")); left != 4 || waiting != 4 || calls.Load() != 4 {
			t.Errorf("%d reads in %d goroutines are left, %d calls of the store", left, waiting, calls.Load())
		}
		time.Sleep(readTimeout)
		synctest.Wait()
		c.clients.mu.Lock()
		defer c.clients.mu.Unlock() // before Close
		if len(c.clients.reading) > 0 || len(c.turns) > 0 || calls.Load() != 4 {
			t.Errorf("%d clients and %d turns are left, %d calls of the store", len(c.clients.reading), len(c.turns), calls.Load())
		}
	})
}

// putEntry adds an entry as a read does.
func (t *clients) putEntry(client, entity string, started instant) {
	r, err := t.join(client, entity, started, 0)
	if err != nil {
		panic(err)
	}
	if err := t.start(r, started); err != nil {
		panic(err)
	}
	t.keep(r, webhookcfg.Webhook{})
	t.leave(r)
	t.leave(r)
}

// TestEviction: the client with the most entries loses one.
func TestEviction(t *testing.T) {
	clients := newClients(8, 1)
	for n := range 20 {
		clients.putEntry("a", fmt.Sprint("e", n), 1)
	}
	for n := range 7 {
		clients.putEntry(string(rune('b'+n)), "e1", 1)
		if got := len(clients.byName["a"].entries); got != 7-n {
			t.Errorf("%d entries left after %d of other clients", got, n+1)
		}
	}
	if clients.size != 8 || len(clients.byName) != 8 || len(clients.bySize) != 8 {
		t.Errorf("%d entries of %d clients, %d in the heap", clients.size, len(clients.byName), len(clients.bySize))
	}
}

// TestEvictionAmongEquals: of several clients with the most entries, the one that has gone
// longest without a new entry loses one.
func TestEvictionAmongEquals(t *testing.T) {
	clients := newClients(8, 1)
	name := func(n int) string { return fmt.Sprint("client ", n) }
	for n := range 100 {
		clients.putEntry(name(n), "e1", 1)
		for kept := max(0, n-7); kept <= n; kept++ {
			if clients.byName[name(kept)] == nil {
				t.Fatalf("client %d lost its entry to client %d", kept, n)
			}
		}
	}
	if len(clients.byName) != 8 {
		t.Errorf("%d clients", len(clients.byName))
	}
}

// TestNames: only clients with entries are checked for their versions, and those without
// are forgotten, unless they are being read.
func TestNames(t *testing.T) {
	clients := newClients(8, 1)
	clients.putEntry("a", "e1", 1)
	if names := clients.names(); len(names) != 1 {
		t.Errorf("with an entry: %q", names)
	}
	r, err := clients.join("a", "e1", 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	clients.check("a", "v1", 2) // which drops the entry
	if names := clients.names(); len(names) > 0 || clients.byName["a"] == nil {
		t.Errorf("while it is read: %q", names)
	}
	clients.leave(r)
	if names := clients.names(); len(names) > 0 || clients.byName["a"] != nil || len(clients.bySize) > 0 {
		t.Errorf("after its version changed: %q", names)
	}
}

// TestPutKeepsTheLaterRead: a read that takes longer than a later one does not replace its
// result.
func TestPutKeepsTheLaterRead(t *testing.T) {
	clients := newClients(8, 1)
	clients.putEntry("a", "e1", 2)
	clients.putEntry("a", "e1", 1)
	if got := clients.byName["a"].entries["e1"].started; got != 2 || clients.size != 1 {
		t.Errorf("started at %d, %d entries", got, clients.size)
	}
}

// TestLeaveOldRead: the end of a read that is too old to be joined leaves the later one
// joinable.
func TestLeaveOldRead(t *testing.T) {
	clients := newClients(8, 1)
	var joined [3]*sharedRead
	for n, called := range []instant{1, 10, 11} {
		if n == 2 {
			clients.leave(joined[0])
		}
		var err error
		if joined[n], err = clients.join("a", "e1", called, 5); err != nil {
			t.Fatal(err)
		}
	}
	if joined[0] == joined[1] || joined[1] != joined[2] {
		t.Errorf("the reads are %p", joined)
	}
}

// TestLeaveUnlinks: a read that has ended is not joined, also while its client has another.
func TestLeaveUnlinks(t *testing.T) {
	clients := newClients(8, 1)
	var joined [3]*sharedRead
	for n, entity := range []string{"other", "e1", "e1"} {
		var err error
		if joined[n], err = clients.join("a", entity, 1, 5); err != nil {
			t.Fatal(err)
		}
		if n == 1 {
			clients.leave(joined[n])
		}
	}
	if joined[1] == joined[2] {
		t.Error("a read without callers was joined")
	}
}

// TestStartAfterEnd: no read starts after close, or without a caller.
func TestStartAfterEnd(t *testing.T) {
	clients := newClients(8, 1)
	left, err := clients.join("a", "e1", 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	clients.leave(left)
	if err := clients.start(left, 2); !errors.Is(err, errUnwanted) {
		t.Errorf("without a caller: %v", err)
	}
	waiting, err := clients.join("a", "e1", 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	go clients.close()
	for closed := false; !closed; runtime.Gosched() {
		clients.mu.RLock()
		closed = clients.closed
		clients.mu.RUnlock()
	}
	if err := clients.start(waiting, 2); !errors.Is(err, ErrClosed) {
		t.Errorf("start: %v", err)
	}
	if _, err := clients.join("a", "e1", 1, 1); !errors.Is(err, ErrClosed) {
		t.Errorf("join: %v", err)
	}
	clients.leave(waiting)
}
