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

func workloads() map[string]linearizable.Workload {
	return map[string]linearizable.Workload{"hot": linearizable.Hot(), "spread": linearizable.Spread()}
}

// shared returns a function that opens one store with one handle.
func shared(open func() linearizable.Store) func(testing.TB) []linearizable.Store {
	return func(testing.TB) []linearizable.Store { return []linearizable.Store{open()} }
}

func TestMemoryIsLinearizable(t *testing.T) {
	for name, workload := range workloads() {
		t.Run(name, func(t *testing.T) {
			linearizable.Check(t, workload, shared(func() linearizable.Store { return store.NewMemory() }))
		})
	}
}

// nonAtomic is a store whose set-all and unset-all take several steps, between which
// other operations see a partial change.
type nonAtomic struct{ linearizable.Store }

func (h nonAtomic) Apply(ctx context.Context, c webhookcfg.Change) error {
	if !c.Scope.IsAll() {
		return h.Store.Apply(ctx, c)
	}
	for entity := range 3 {
		if err := h.Store.Apply(ctx, webhookcfg.UnsetChange(c.Client, webhookcfg.Entity(fmt.Sprint("e", entity)))); err != nil {
			return err
		}
		runtime.Gosched() // or few goroutines would overlap in memory
	}
	return h.Store.Apply(ctx, c)
}

// stale is a store that repeats earlier results for some resolves.
type stale struct {
	linearizable.Store
	mu   sync.Mutex
	last map[string]webhookcfg.Webhook
}

func newStale() linearizable.Store {
	return &stale{Store: store.NewMemory(), last: make(map[string]webhookcfg.Webhook)}
}

func (f *stale) Resolve(ctx context.Context, client, entity string) (webhookcfg.Webhook, error) {
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
		"nonAtomic": func() linearizable.Store { return nonAtomic{store.NewMemory()} },
		"stale":     newStale,
	} {
		for in, workload := range workloads() {
			t.Run(name+"/"+in, func(t *testing.T) { linearizable.MustFail(t, workload, shared(open)) })
		}
	}
}

// TestSeparateStoresAreCaught runs histories on two handles that share no state.
func TestSeparateStoresAreCaught(t *testing.T) {
	linearizable.MustFail(t, linearizable.Hot(), func(testing.TB) []linearizable.Store {
		return []linearizable.Store{store.NewMemory(), store.NewMemory()}
	})
}

var errLost = errors.New("response lost")

// faulty is a store that returns an error for some changes, after calling fail for
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
	workload := linearizable.Hot()
	workload.Fault = func() error { return nil }
	apply := func(st linearizable.Store, c webhookcfg.Change) { _ = st.Apply(context.Background(), c) }
	late := func(st linearizable.Store, c webhookcfg.Change) { go apply(st, c) }
	nothing := func(linearizable.Store, webhookcfg.Change) {}
	other := func(st linearizable.Store, c webhookcfg.Change) {
		apply(st, webhookcfg.UnsetChange(c.Client, webhookcfg.Entity("e0")))
	}
	for name, fail := range map[string]func(linearizable.Store, webhookcfg.Change){"took effect": apply, "takes effect later": late, "never takes effect": nothing} {
		t.Run(name, func(t *testing.T) {
			linearizable.Check(t, workload, shared(func() linearizable.Store { return faulty{store.NewMemory(), fail} }))
		})
	}
	t.Run("makes another change", func(t *testing.T) {
		linearizable.MustFail(t, workload, shared(func() linearizable.Store { return faulty{store.NewMemory(), other} }))
	})
}

// reporter counts the errors that a check reports.
type reporter struct {
	testing.TB
	errors int
}

func (r *reporter) Errorf(format string, args ...any) {
	r.errors++
	r.Logf("expected failure: "+format, args...)
}

func (r *reporter) Error(args ...any) { r.Errorf("%s", fmt.Sprint(args...)) }

// TestVerdicts checks that each condition that must fail a test does.
func TestVerdicts(t *testing.T) {
	memory := func() linearizable.Store { return store.NewMemory() }
	failing := func() linearizable.Store {
		return faulty{store.NewMemory(), func(linearizable.Store, webhookcfg.Change) {}}
	}
	undisturbed := linearizable.Hot()
	disturbed := undisturbed
	disturbed.Fault = func() error { return errors.New("no server to kill") }
	for name, test := range map[string]struct {
		workload linearizable.Workload
		open     func() linearizable.Store
		check    func(testing.TB, linearizable.Workload, func(testing.TB) []linearizable.Store)
	}{
		"broken":                  {undisturbed, newStale, linearizable.Check},
		"failing without a fault": {undisturbed, failing, linearizable.Check},
		"a fault that fails":      {disturbed, memory, linearizable.Check},
		"not broken":              {undisturbed, memory, linearizable.MustFail},
	} {
		t.Run(name, func(t *testing.T) {
			r := &reporter{TB: t}
			if test.check(r, test.workload, shared(test.open)); r.errors == 0 {
				t.Error("no error was reported")
			}
		})
	}
}
