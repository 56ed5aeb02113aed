package store_test

import (
	"fmt"
	"slices"
	"testing"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/store/cache"
	"example.com/go-webhookcfg/webhookcfg"
)

// follow starts a sequence of reads.
func follow(t *testing.T, feed cache.Feed) (cursor string) {
	t.Helper()
	changes, err := feed.Changes(t.Context(), "")
	if err != nil || !changes.Reset {
		t.Fatal(changes, err)
	}
	return changes.Next
}

// TestMemoryFeedIsBounded: a cursor that is too far behind gives a Reset, and a client
// that changes all the time does not displace others.
func TestMemoryFeedIsBounded(t *testing.T) {
	m := store.NewMemory()
	cursor := follow(t, m)
	hooktest.Apply(t, m, hooktest.Set("seldom", "e1", 0))
	for n := range 20_000 {
		hooktest.Apply(t, m, hooktest.Set("often", "e1", n))
	}
	changes, err := m.Changes(t.Context(), cursor)
	slices.Sort(changes.Clients)
	if want := []string{"often", "seldom"}; err != nil || changes.Reset || !slices.Equal(changes.Clients, want) {
		t.Errorf("got %v, %v; want %q", changes, err, want)
	}
	const remembered = 4096
	for _, test := range []struct {
		clients int
		reset   bool
	}{{remembered - 1, false}, {remembered, false}, {remembered + 1, true}, {3*remembered + 7, true}} {
		cursor := follow(t, m)
		for n := range test.clients {
			hooktest.Apply(t, m, hooktest.Set(fmt.Sprintf("%d of %d", n, test.clients), "e1", n))
		}
		if n := m.Unseen(); n > remembered {
			t.Errorf("after changes of %d clients, %d are remembered", test.clients, n)
		}
		changes, err := m.Changes(t.Context(), cursor)
		if err != nil || changes.Reset != test.reset || !test.reset && len(changes.Clients) != test.clients {
			t.Errorf("after changes of %d clients: reset %t, %d clients, %v", test.clients, changes.Reset, len(changes.Clients), err)
		}
		if n := m.Unseen(); n > 0 {
			t.Errorf("after a read, %d clients count as unseen", n)
		}
		if changes, err = m.Changes(t.Context(), changes.Next); err != nil || changes.Reset || len(changes.Clients) > 0 {
			t.Errorf("after all was read: %v, %v", changes, err)
		}
	}
}

// TestMemoryFeedsDiffer: a cursor of one store means nothing to another.
func TestMemoryFeedsDiffer(t *testing.T) {
	cursor := follow(t, store.NewMemory())
	if changes, err := store.NewMemory().Changes(t.Context(), cursor); err != nil || !changes.Reset {
		t.Errorf("got %v, %v", changes, err)
	}
}

// TestMemoryFeedDoesNotAllocate: a change of a store whose feed is not read allocates
// nothing, and otherwise a name allocates once between two reads.
func TestMemoryFeedDoesNotAllocate(t *testing.T) {
	m := store.NewMemory()
	apply := func() { hooktest.Apply(t, m, webhookcfg.UnsetChange("acme", webhookcfg.Entity("e1"))) }
	if n := testing.AllocsPerRun(100, apply); n > 0 {
		t.Errorf("%v allocations without a reader", n)
	}
	follow(t, m)
	notifications := m.Notify(t.Context())
	apply()
	if n := testing.AllocsPerRun(100, apply); n > 0 {
		t.Errorf("%v allocations with a reader", n)
	}
	if len(notifications) != 1 {
		t.Errorf("%d notifications", len(notifications))
	}
}
