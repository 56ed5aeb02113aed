package admin_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/store/admin"
	"example.com/go-webhookcfg/webhookcfg"
	"github.com/google/go-cmp/cmp"
)

// noRestart prepares for no restart.
func noRestart() error { return nil }

// TestMove moves between stores while writers make changes of every kind, before, during and
// after the move. Afterwards the new store has every acknowledged change.
func TestMove(t *testing.T) {
	open := func(name string) listed {
		f, err := store.OpenFile(filepath.Join(t.TempDir(), name), nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		return f
	}
	for name, stores := range map[string][2]listed{
		"memory to memory": {store.NewMemory(), store.NewMemory()},
		"memory to file":   {open("to"), store.NewMemory()},
		"file to memory":   {store.NewMemory(), open("from")},
	} {
		dst, acknowledged := stores[0], store.NewMemory()
		webhooks := newMovable(stores[1], dst)
		moved := make(chan struct{})
		var writers sync.WaitGroup
		for w := range 4 {
			writers.Go(func() {
				random := rand.New(rand.NewPCG(uint64(w), 0))
				for n, left := 0, 20; left > 0; n++ {
					select {
					case <-moved:
						left--
					default:
					}
					change := randomChange(random, w, n)
					err := webhooks.Apply(t.Context(), change)
					if err == nil {
						err = acknowledged.Apply(t.Context(), change)
					}
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		err := webhooks.move(t.Context(), noRestart)
		close(moved)
		writers.Wait()
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(dump(t, acknowledged), dump(t, dst)); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
	}
}

// randomChange returns the nth change of a writer, for one of its own clients.
func randomChange(random *rand.Rand, writer, n int) webhookcfg.Change {
	client, entity := fmt.Sprint("client ", writer, " ", random.IntN(10)), fmt.Sprint("e", random.IntN(5))
	switch random.IntN(8) {
	case 0:
		return hooktest.SetAll(client, n)
	case 1:
		return hooktest.UnsetAll(client, n)
	case 2, 3:
		return hooktest.Unset(client, entity, n)
	default:
		return hooktest.Set(client, entity, n)
	}
}

// TestMoveWaits: a move waits for the changes in progress, and later changes wait for the move,
// until their contexts end. Reads don't wait.
func TestMoveWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dst, src := store.NewMemory(), memoryWith(t, hooktest.SetAll("acme", 1))
		proceed := make(chan struct{})
		webhooks := newMovable(wrapped{Memory: src, apply: func(webhookcfg.Change) error {
			<-proceed
			return nil
		}}, dst)
		var running sync.WaitGroup
		start := func(do func() error) {
			running.Go(func() {
				if err := do(); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		start(func() error { return webhooks.Apply(t.Context(), hooktest.Set("acme", "before", 2)) })
		start(func() error { return webhooks.move(t.Context(), noRestart) })
		start(func() error { return webhooks.Apply(t.Context(), hooktest.Set("acme", "after", 3)) })

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := webhooks.Apply(ctx, hooktest.Set("acme", "never", 4)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a change that waits too long gives %v", err)
		}
		if hook, err := webhooks.Resolve(t.Context(), "acme", "e1"); err != nil || hook.Source != webhookcfg.SourceBase {
			t.Errorf("during the move: %v, %v", hook, err)
		}
		if page, err := webhooks.List(t.Context(), "acme", "", 1); err != nil || page.Base.URL.IsZero() {
			t.Errorf("during the move: %v, %v", page, err)
		}
		close(proceed)
		running.Wait()
		want := memoryWith(t, hooktest.SetAll("acme", 1), hooktest.Set("acme", "before", 2), hooktest.Set("acme", "after", 3))
		if diff := cmp.Diff(dump(t, want), dump(t, dst)); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
		if err := webhooks.move(t.Context(), noRestart); err != nil {
			t.Errorf("a second move: %v", err)
		}
	})
}

// TestMoveFails: a move ends with the errors of its parts, and with a difference. The service
// goes on with the store that it had.
func TestMoveFails(t *testing.T) {
	sound := func() *store.Memory { return memoryWith(t, hooktest.SetAll("acme", 1)) }
	refused := wrapped{Memory: store.NewMemory(), apply: func(webhookcfg.Change) error { return webhookcfg.ErrInvalidArgument }}
	broken := wrapped{Memory: sound(), names: func() error { return errBroken }}
	for name, test := range map[string]struct {
		dst, src       listed
		prepareRestart func() error
		want           string
	}{
		"without a feed": {store.NewMemory(), struct{ listed }{sound()}, noRestart, "no feed"},
		"not empty":      {sound(), sound(), noRestart, admin.ErrNotEmpty.Error()},
		"refused":        {refused, sound(), noRestart, "1 webhooks differ"},
		"broken":         {store.NewMemory(), broken, noRestart, errBroken.Error()},
		"unprepared":     {store.NewMemory(), sound(), func() error { return errBroken }, errBroken.Error()},
	} {
		webhooks := newMovable(test.src, test.dst)
		if err := webhooks.move(t.Context(), test.prepareRestart); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
		hooktest.Apply(t, webhooks, hooktest.Set("acme", "e2", 2))
		if hook, err := test.src.Resolve(t.Context(), "acme", "e2"); err != nil || hook.Source != webhookcfg.SourceOverride {
			t.Errorf("%s: a change after the move: %v, %v", name, hook, err)
		}
	}
}
