package storetest

import (
	"context"
	"errors"
	"testing"

	"example.com/go-webhookcfg/webhookcfg"
)

// Harness tells [Run] how to open your store. Its functions are called one after another,
// from the test's goroutine, so Reopen, Crash and OpenPeer can use a variable that Open has
// set.
type Harness struct {
	// Open returns an empty store. It's called once per case, and should release resources
	// with t.Cleanup. You must set it.
	Open func(t testing.TB) webhookcfg.Store

	// Reopen closes the store and opens the same state again. If nil, your store isn't
	// durable, and the cases that need it are skipped.
	Reopen func(t testing.TB, s webhookcfg.Store) webhookcfg.Store

	// Crash opens the state of s again without closing s, as if the process had been killed.
	// No call is in progress, and s isn't used any more. If only one handle can have the
	// state at a time, open a copy of it, such as a byte for byte copy of the files. If nil,
	// the cases that need it are skipped.
	Crash func(t testing.TB, s webhookcfg.Store) webhookcfg.Store

	// OpenPeer opens another handle on the state of s, like a second process that shares the
	// database. If nil, only one handle can have the state at a time, and the cases that need
	// several are skipped.
	OpenPeer func(t testing.TB, s webhookcfg.Store) webhookcfg.Store

	// Seed is the seed of the random histories. Set it to the seed in a failure to reproduce
	// the failure. Zero means a different one in each run.
	Seed uint64
}

// Run runs every case as a subtest, each on its own store.
func Run(t *testing.T, h Harness) {
	t.Helper()
	if h.Open == nil {
		t.Fatal("storetest: Harness.Open is nil: set it to a function that returns an empty store")
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
	e := Env{Store: h.Open(t), Seed: h.Seed, Short: testing.Short()}
	if h.Reopen != nil {
		e.Reopen = func(s webhookcfg.Store) webhookcfg.Store { return h.Reopen(t, s) }
	}
	if h.Crash != nil {
		e.Crash = func(s webhookcfg.Store) webhookcfg.Store { return h.Crash(t, s) }
	}
	if h.OpenPeer != nil {
		e.OpenPeer = func(s webhookcfg.Store) webhookcfg.Store { return h.OpenPeer(t, s) }
	}
	return e
}

// Env gives a case its store. [Run] makes it from a [Harness].
type Env struct {
	// Store must be empty when the case starts.
	Store webhookcfg.Store
	// Reopen closes a store and opens the same state again. Nil means that the store isn't
	// durable.
	Reopen func(s webhookcfg.Store) webhookcfg.Store
	// Crash opens a store's state again without closing the store. Nil means that this isn't
	// possible.
	Crash func(s webhookcfg.Store) webhookcfg.Store
	// OpenPeer opens another handle on a store's state. Nil means that there can be only one.
	OpenPeer func(s webhookcfg.Store) webhookcfg.Store
	// Seed is the seed of the random histories. Zero means a different one in each run.
	Seed uint64
	// Short makes half of the calls, as go test -short does. It doesn't go beyond limits of
	// more than a few hundred overrides or clients, has fewer names, and is less likely to find
	// rare races.
	Short bool
}

// ErrAbsent is the error of a case that you can skip, because the store doesn't have an
// optional interface or capability.
var ErrAbsent = errors.New("storetest: optional capability absent")

// Case tests one rule for stores.
type Case struct {
	// Name starts with the number of a clause of Store, or with "lister", "clients", "eraser",
	// "feed", "versioner", "notifier", "history" or "errors".
	Name string
	// Rule is the sentence in the documentation that the case tests.
	Rule string
	// Check returns nil if the store follows the rule. Otherwise the error contains the rule,
	// or wraps [ErrAbsent].
	Check func(ctx context.Context, e Env) error
}
