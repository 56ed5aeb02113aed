package store_test

import (
	"context"
	"fmt"
	"testing"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/store/storetest"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

func TestZeroMemory(t *testing.T) {
	var m store.Memory
	if hook, err := m.Resolve(t.Context(), "acme", "e1"); err != nil || hook.Source != webhookcfg.SourceNone {
		t.Errorf("resolve in the zero value: %v, %v", hook, err)
	}
	change := webhookcfg.SetChange("acme", webhookcfg.All(), egress.NewURL("https://h.example.com/"))
	if err := m.Apply(t.Context(), change); err != nil {
		t.Error(err)
	}
}

// TestMemoryWithoutSubscriber: the store works on after the last subscriber left.
func TestMemoryWithoutSubscriber(t *testing.T) {
	m := store.NewMemory()
	ctx, cancel := context.WithCancel(t.Context())
	notifications := m.Notify(ctx)
	cancel()
	if _, open := <-notifications; open {
		t.Error("a notification without a change")
	}
	hooktest.Apply(t, m, hooktest.SetAll("acme", 1))
}

// TestMemoryResolveDoesNotAllocate: a sender may resolve before every webhook call.
func TestMemoryResolveDoesNotAllocate(t *testing.T) {
	m := store.NewMemory()
	for i := range 100 {
		change := webhookcfg.SetChange("acme", webhookcfg.Entity(fmt.Sprint("e", i)), egress.NewURL("https://h.example.com/"))
		if err := m.Apply(t.Context(), change); err != nil {
			t.Fatal(err)
		}
	}
	ctx := t.Context()
	for _, entity := range []string{"e7", "unknown"} {
		allocations := testing.AllocsPerRun(100, func() {
			if _, err := m.Resolve(ctx, "acme", entity); err != nil {
				t.Error(err)
			}
		})
		if allocations > 0 {
			t.Errorf("resolve of %s: %v allocations", entity, allocations)
		}
	}
}

func BenchmarkMemory(b *testing.B) {
	storetest.Benchmark(b, func(testing.TB) webhookcfg.Store { return store.NewMemory() })
}
