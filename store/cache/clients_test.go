package cache

import (
	"context"
	"errors"
	"fmt"
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
		if err := c.Store().Apply(t.Context(), webhookcfg.Unset("changes", webhookcfg.All())); err != nil {
			t.Error(err)
		}
		time.Sleep(readTimeout)
		synctest.Wait()
		if len(c.clients.byName) > 0 || len(c.clients.bySize) > 0 || len(c.clients.changing) > 0 || c.clients.size != 0 {
			t.Errorf("left: %v, %d in the heap, %v, %d entries", c.clients.byName, len(c.clients.bySize), c.clients.changing, c.clients.size)
		}
	})
}

// putEntry adds an entry as a read does.
func (t *clients) putEntry(client, entity string) {
	owner, err := t.join(client)
	if err != nil {
		panic(err)
	}
	t.put(owner, entity, readResult{started: 1})
	t.release(owner)
}

// TestEviction: the client with the most entries loses one.
func TestEviction(t *testing.T) {
	clients := newClients(8)
	for n := range 20 {
		clients.putEntry("a", fmt.Sprint("e", n))
	}
	for n := range 7 {
		clients.putEntry(string(rune('b'+n)), "e1")
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
	clients := newClients(8)
	name := func(n int) string { return fmt.Sprint("client ", n) }
	for n := range 100 {
		clients.putEntry(name(n), "e1")
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
// are dropped.
func TestNames(t *testing.T) {
	clients := newClients(8)
	owner, err := clients.join("a")
	if err != nil {
		t.Fatal(err)
	}
	if names := clients.names(); len(names) > 0 || clients.byName["a"] == nil {
		t.Errorf("while it is read: %q", names)
	}
	clients.put(owner, "e1", readResult{started: 1})
	clients.release(owner)
	if names := clients.names(); len(names) != 1 {
		t.Errorf("with an entry: %q", names)
	}
	clients.check("a", "v1", 2) // which drops the entry
	if names := clients.names(); len(names) > 0 || clients.byName["a"] != nil {
		t.Errorf("after its version changed: %q", names)
	}
}

// TestPutKeepsTheLaterRead: a read that takes longer than a later one does not replace its
// result.
func TestPutKeepsTheLaterRead(t *testing.T) {
	clients := newClients(8)
	owner, err := clients.join("a")
	if err != nil {
		t.Fatal(err)
	}
	clients.put(owner, "e1", readResult{started: 2})
	clients.put(owner, "e1", readResult{started: 1})
	if got := owner.entries["e1"].started; got != 2 || clients.size != 1 {
		t.Errorf("started at %d, %d entries", got, clients.size)
	}
}

// TestClosedClients: after close no read starts, also for a caller that has left.
func TestClosedClients(t *testing.T) {
	clients := newClients(8)
	owner, err := clients.join("a")
	if err != nil {
		t.Fatal(err)
	}
	clients.release(owner)
	clients.close()
	if err := clients.hold(owner); !errors.Is(err, ErrClosed) {
		t.Errorf("hold: %v", err)
	}
	if _, err := clients.join("a"); !errors.Is(err, ErrClosed) {
		t.Errorf("join: %v", err)
	}
}
