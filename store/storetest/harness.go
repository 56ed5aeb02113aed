package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"example.com/go-webhookcfg/store/cache"
	"example.com/go-webhookcfg/webhookcfg"
)

// Harness says how to come by the store that is tested. Its functions are called
// from the goroutine of the test, for one case after the other: Reopen and OpenPeer may
// take from a variable what Open left there.
type Harness struct {
	// Open returns a store that is empty. It is called once for each case. What is
	// to be released afterwards it gives to t.Cleanup. It must not be nil.
	Open func(t testing.TB) webhookcfg.Store

	// Reopen closes the store and opens the same state again. Nil says that the
	// store is not durable; the cases that need it are skipped.
	Reopen func(t testing.TB, s webhookcfg.Store) webhookcfg.Store

	// OpenPeer opens one more handle on the state of s, as another process does that
	// shares the database with the first. Nil says that there is one handle at a time;
	// the cases that need several are skipped.
	OpenPeer func(t testing.TB, s webhookcfg.Store) webhookcfg.Store

	// Seed is where the random histories begin; 0 is another one each time. A failure
	// names the seed that repeats it.
	Seed uint64
}

// Run runs every case as a subtest, each on a store of its own.
func Run(t *testing.T, h Harness) {
	t.Helper()
	if h.Open == nil {
		t.Fatal("storetest: the harness has no Open")
	}
	for _, c := range Cases() {
		t.Run(c.Name, func(t *testing.T) {
			err := c.Check(t.Context(), h.env(t))
			if errors.Is(err, ErrAbsent) {
				t.Skip(err)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
}

func (h Harness) env(t testing.TB) Env {
	e := Env{Store: h.Open(t), Seed: h.Seed}
	if h.Reopen != nil {
		e.Reopen = func(s webhookcfg.Store) webhookcfg.Store { return h.Reopen(t, s) }
	}
	if h.OpenPeer != nil {
		e.OpenPeer = func(s webhookcfg.Store) webhookcfg.Store { return h.OpenPeer(t, s) }
	}
	return e
}

// Env is what a case runs on.
type Env struct {
	// Store is empty when the case begins.
	Store webhookcfg.Store
	// Reopen closes a store and opens the same state again; nil if the store is
	// not durable.
	Reopen func(s webhookcfg.Store) webhookcfg.Store
	// OpenPeer opens one more handle on the state of a store; nil if there can be one
	// alone.
	OpenPeer func(s webhookcfg.Store) webhookcfg.Store
	// Seed is where random histories begin; 0 is another one each time.
	Seed uint64
}

// ErrAbsent is wrapped by the error of a case that does not concern the store,
// since the store lacks an ability that is optional.
var ErrAbsent = errors.New("storetest: optional ability is absent")

// Case is one thing that is asked of a store.
type Case struct {
	// Name begins with the number of the clause of Store, or says "lister", "feed",
	// "versioner", "notifier" or "history".
	Name string
	// Rule are the words of the documentation that the case is about.
	Rule string
	// Check returns nil if the store keeps the rule, and otherwise an error that
	// repeats it, or that wraps [ErrAbsent].
	Check func(ctx context.Context, e Env) error
}

// The methods of Env return an error that wraps ErrAbsent where the store has not got
// the ability.

func (e Env) durable() error {
	if e.Reopen == nil {
		return fmt.Errorf("%w: the harness has no Reopen, so the store is not taken for durable", ErrAbsent)
	}
	return nil
}

// handles returns the store and more handles on its state.
func (e Env) handles(n int) ([]webhookcfg.Store, error) {
	if e.OpenPeer == nil {
		return nil, fmt.Errorf("%w: the harness has no OpenPeer, so the store is taken to have one handle at a time", ErrAbsent)
	}
	all := []webhookcfg.Store{e.Store}
	for len(all) < n {
		all = append(all, e.OpenPeer(e.Store))
	}
	return all, nil
}

func (e Env) lister() (webhookcfg.Lister, error) {
	return optional[webhookcfg.Lister](e.Store, "webhookcfg.Lister")
}

func (e Env) feed() (cache.Feed, error) {
	return optional[cache.Feed](e.Store, "cache.Feed")
}

func (e Env) versioner() (cache.Versioner, error) {
	return optional[cache.Versioner](e.Store, "cache.Versioner")
}

func (e Env) notifier() (cache.Notifier, error) {
	return optional[cache.Notifier](e.Store, "cache.Notifier")
}

func optional[C any](s webhookcfg.Store, name string) (C, error) {
	c, ok := s.(C)
	if !ok {
		return c, fmt.Errorf("%w: a %T is no %s", ErrAbsent, s, name)
	}
	return c, nil
}
