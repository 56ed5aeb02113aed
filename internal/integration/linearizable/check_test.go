package linearizable_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"example.com/go-webhookcfg/internal/integration/linearizable"
	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
)

func settings() map[string]linearizable.Setting {
	return map[string]linearizable.Setting{"hot": linearizable.Hot(), "spread": linearizable.Spread()}
}

// shared returns a function that opens one store with one handle.
func shared(open func() linearizable.Store) func(testing.TB) []linearizable.Store {
	return func(testing.TB) []linearizable.Store { return []linearizable.Store{open()} }
}

func TestMemoryIsLinearizable(t *testing.T) {
	for name, setting := range settings() {
		t.Run(name, func(t *testing.T) {
			linearizable.Check(t, setting, shared(func() linearizable.Store { return store.NewMemory() }))
		})
	}
}

// halfway is a store whose set-all and unset-all happen in two steps, with a gap
// in which others see the half.
type halfway struct{ linearizable.Store }

func (h halfway) Apply(ctx context.Context, c webhookcfg.Change) error {
	if !c.Scope.IsAll() {
		return h.Store.Apply(ctx, c)
	}
	for entity := range 3 {
		if err := h.Store.Apply(ctx, webhookcfg.Unset(c.Client, webhookcfg.Entity(fmt.Sprint("e", entity)))); err != nil {
			return err
		}
		runtime.Gosched() // a few goroutines seldom overlap in memory
	}
	return h.Store.Apply(ctx, c)
}

// forgetful is a store that answers some resolves from what it saw before.
type forgetful struct {
	linearizable.Store
	mu   sync.Mutex
	last map[string]webhookcfg.Webhook
}

func newForgetful() linearizable.Store {
	return &forgetful{Store: store.NewMemory(), last: make(map[string]webhookcfg.Webhook)}
}

func (f *forgetful) Resolve(ctx context.Context, client, entity string) (webhookcfg.Webhook, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := client + "/" + entity
	if hook, ok := f.last[key]; ok && rand.IntN(3) == 0 {
		return hook, nil
	}
	hook, err := f.Store.Resolve(ctx, client, entity)
	f.last[key] = hook
	return hook, err
}

func TestBrokenStoresAreCaught(t *testing.T) {
	for name, open := range map[string]func() linearizable.Store{
		"halfway":   func() linearizable.Store { return halfway{store.NewMemory()} },
		"forgetful": newForgetful,
	} {
		for in, setting := range settings() {
			t.Run(name+"/"+in, func(t *testing.T) { linearizable.MustFail(t, setting, shared(open)) })
		}
	}
}

// TestApartIsCaught: two handles that share nothing are no one store.
func TestApartIsCaught(t *testing.T) {
	linearizable.MustFail(t, linearizable.Hot(), func(testing.TB) []linearizable.Store {
		return []linearizable.Store{store.NewMemory(), store.NewMemory()}
	})
}

var errLost = errors.New("the answer was lost")

// faulty is a store that says of some changes that they failed, and calls fail for
// each.
type faulty struct {
	linearizable.Store
	fail func(st linearizable.Store, c webhookcfg.Change)
}

func (f faulty) Apply(ctx context.Context, c webhookcfg.Change) error {
	if rand.IntN(8) > 0 {
		return f.Store.Apply(ctx, c)
	}
	f.fail(f.Store, c)
	return errLost
}

func TestFailedChanges(t *testing.T) {
	setting := linearizable.Hot()
	setting.Disturb = func() error { return nil }
	apply := func(st linearizable.Store, c webhookcfg.Change) { _ = st.Apply(context.Background(), c) }
	late := func(st linearizable.Store, c webhookcfg.Change) { go apply(st, c) }
	nothing := func(linearizable.Store, webhookcfg.Change) {}
	other := func(st linearizable.Store, c webhookcfg.Change) {
		apply(st, webhookcfg.Unset(c.Client, webhookcfg.Entity("e0")))
	}
	for name, fail := range map[string]func(linearizable.Store, webhookcfg.Change){"happened": apply, "happen later": late, "never happen": nothing} {
		t.Run(name, func(t *testing.T) {
			linearizable.Check(t, setting, shared(func() linearizable.Store { return faulty{store.NewMemory(), fail} }))
		})
	}
	t.Run("do something else", func(t *testing.T) {
		linearizable.MustFail(t, setting, shared(func() linearizable.Store { return faulty{store.NewMemory(), other} }))
	})
}

// recorder takes down what a check has to say about a store.
type recorder struct {
	testing.TB
	errors int
}

func (r *recorder) Errorf(format string, args ...any) {
	r.errors++
	r.Logf("as it should: "+format, args...)
}

func (r *recorder) Error(args ...any) { r.Errorf("%s", fmt.Sprint(args...)) }

// TestVerdicts: what ought to fail a test does.
func TestVerdicts(t *testing.T) {
	memory := func() linearizable.Store { return store.NewMemory() }
	failing := func() linearizable.Store {
		return faulty{store.NewMemory(), func(linearizable.Store, webhookcfg.Change) {}}
	}
	undisturbed := linearizable.Hot()
	disturbed := undisturbed
	disturbed.Disturb = func() error { return errors.New("no server to kill") }
	for name, test := range map[string]struct {
		setting linearizable.Setting
		open    func() linearizable.Store
		check   func(testing.TB, linearizable.Setting, func(testing.TB) []linearizable.Store)
	}{
		"broken":                   {undisturbed, newForgetful, linearizable.Check},
		"failing for no reason":    {undisturbed, failing, linearizable.Check},
		"a disturbance that fails": {disturbed, memory, linearizable.Check},
		"not broken":               {undisturbed, memory, linearizable.MustFail},
	} {
		t.Run(name, func(t *testing.T) {
			r := &recorder{TB: t}
			if test.check(r, test.setting, shared(test.open)); r.errors == 0 {
				t.Error("nothing was said")
			}
		})
	}
}
