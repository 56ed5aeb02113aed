package cache_test

import (
	"testing"

	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/store/cache"
	"example.com/go-webhookcfg/store/storetest"
	"example.com/go-webhookcfg/webhookcfg"
)

// TestConforms: if you make a change through a cache, you see it at once when you resolve
// through it, with and without a Feed.
func TestConforms(t *testing.T) {
	for name, without := range map[string]func(*store.Memory) webhookcfg.Store{
		"feed":    func(m *store.Memory) webhookcfg.Store { return m },
		"neither": func(m *store.Memory) webhookcfg.Store { return struct{ webhookcfg.Store }{m} },
	} {
		t.Run(name, func(t *testing.T) {
			storetest.Run(t, storetest.Harness{Open: func(t testing.TB) webhookcfg.Store {
				copied, err := cache.New(without(store.NewMemory()), nil)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = copied.Close() })
				return copied.Store()
			}})
		})
	}
}
