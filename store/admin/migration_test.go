package admin_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/store/admin"
	"example.com/go-webhookcfg/webhookcfg"
	"github.com/google/go-cmp/cmp"
)

// TestMigrate migrates between stores while writers make changes of every kind. The destination
// is equal to the source then.
func TestMigrate(t *testing.T) {
	open := func(name string) webhookcfg.Store {
		f, err := store.OpenFile(filepath.Join(t.TempDir(), name), nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		return f
	}
	for name, stores := range map[string][2]webhookcfg.Store{
		"memory to memory": {store.NewMemory(), store.NewMemory()},
		"memory to file":   {open("to"), store.NewMemory()},
		"file to memory":   {store.NewMemory(), open("from")},
	} {
		dst, src := stores[0], stores[1]
		stop := make(chan struct{})
		var writers sync.WaitGroup
		for w := range 4 {
			writers.Go(func() {
				random := rand.New(rand.NewPCG(uint64(w), 0))
				for n := 0; ; n++ {
					select {
					case <-stop:
						return
					default:
					}
					client, entity := fmt.Sprint("client ", random.IntN(40)), fmt.Sprint("e", random.IntN(5))
					change := hooktest.Set(client, entity, n)
					switch random.IntN(8) {
					case 0:
						change = hooktest.SetAll(client, n)
					case 1:
						change = hooktest.UnsetAll(client, n)
					case 2, 3:
						change = hooktest.Unset(client, entity, n)
					}
					if err := src.Apply(t.Context(), change); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		halt := sync.OnceFunc(func() {
			close(stop)
			writers.Wait()
		})
		err := migrate(t.Context(), dst, src, halt)
		halt()
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(dump(t, src), dump(t, dst)); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
	}
}

// TestMigrateFails: a migration ends with the errors of its parts, and with a difference.
func TestMigrateFails(t *testing.T) {
	sound := func() *store.Memory { return memoryWith(t, hooktest.SetAll("acme", 1)) }
	refused := wrapped{Memory: store.NewMemory(), apply: func(webhookcfg.Change) error { return webhookcfg.ErrInvalidArgument }}
	for name, test := range map[string]struct {
		dst, src webhookcfg.Store
		want     string
	}{
		"without a feed": {store.NewMemory(), struct{ webhookcfg.Store }{sound()}, "no feed"},
		"not empty":      {sound(), sound(), admin.ErrNotEmpty.Error()},
		"refused":        {refused, sound(), "1 webhooks differ"},
	} {
		if err := migrate(t.Context(), test.dst, test.src, func() {}); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	broken := wrapped{Memory: sound(), names: func() error { return errBroken }}
	if err := migrate(t.Context(), store.NewMemory(), broken, func() {}); !errors.Is(err, errBroken) {
		t.Errorf("broken: %v", err)
	}
}
