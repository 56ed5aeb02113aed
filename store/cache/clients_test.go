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

// TestEviction: the client with the most entries loses one and, among equals, the one
// that has gone longest without a new entry.
func TestEviction(t *testing.T) {
	clients := newClients(8)
	put := func(client string, n int) {
		owner, err := clients.join(client)
		if err != nil {
			t.Fatal(err)
		}
		clients.put(owner, fmt.Sprint("e", n), readResult{started: 1})
		clients.release(owner)
	}
	sizes := func() (text string) {
		for _, client := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"} {
			n := 0
			if owner := clients.byName[client]; owner != nil {
				n = len(owner.entries)
			}
			text += fmt.Sprint(n)
		}
		return text
	}
	for n := range 20 {
		put("a", n)
	}
	for n, want := range []string{"7100000000", "6110000000", "5111000000", "4111100000", "3111110000", "2111111000", "1111111100", "0111111110", "0011111111"} {
		put(string(rune('b'+n)), n)
		if got := sizes(); got != want {
			t.Fatalf("after client %c: %s, want %s", 'b'+n, got, want)
		}
	}
	if clients.size != 8 || len(clients.byName) != 8 || len(clients.bySize) != 8 {
		t.Errorf("%d entries of %d clients, %d in the heap", clients.size, len(clients.byName), len(clients.bySize))
	}
}
