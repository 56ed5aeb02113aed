package storetest

import (
	"context"
	"errors"
	"testing"

	"example.com/go-webhookcfg/webhookcfg"
)

// Harness provides the store under test. Its functions are called from the goroutine of the
// test, for one case after another, so that Reopen, Crash and OpenPeer may use a variable
// that Open set.
type Harness struct {
	// Open returns an empty store. It is called once per case, and registers the release
	// of resources with t.Cleanup. It must not be nil.
	Open func(t testing.TB) webhookcfg.Store

	// Reopen closes the store and opens the same state again. If nil, the store is not
	// durable, and the cases that need it are skipped.
	Reopen func(t testing.TB, s webhookcfg.Store) webhookcfg.Store

	// Crash opens the state of s again without closing s, as after the process was
	// killed. No call is in progress, and s is not used any more. If only one handle can
	// have the state, open a copy of it: for example of the files, byte for byte. If nil,
	// the cases that need it are skipped.
	Crash func(t testing.TB, s webhookcfg.Store) webhookcfg.Store

	// OpenPeer opens another handle on the state of s, as a second process does that
	// shares the database. If nil, the state has one handle at a time, and the cases
	// that need several are skipped.
	OpenPeer func(t testing.TB, s webhookcfg.Store) webhookcfg.Store

	// Seed is the seed of the random histories. Zero means a different one in each run. A
	// failure contains the seed that reproduces it.
	Seed uint64
}

// Run runs every case as a subtest, each on a store of its own.
func Run(t *testing.T, h Harness) {
	t.Helper()
	if h.Open == nil {
		t.Fatal("storetest: Harness.Open is nil")
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

// Env is the environment of a case.
type Env struct {
	// Store is empty when the case starts.
	Store webhookcfg.Store
	// Reopen closes a store and opens the same state again; nil if the store is not
	// durable.
	Reopen func(s webhookcfg.Store) webhookcfg.Store
	// Crash opens the state of a store again without closing it; nil if that is not
	// possible.
	Crash func(s webhookcfg.Store) webhookcfg.Store
	// OpenPeer opens another handle on the state of a store; nil if there can be only
	// one.
	OpenPeer func(s webhookcfg.Store) webhookcfg.Store
	// Seed is the seed of the random histories. Zero means a different one in each run.
	Seed uint64
	// Short makes fewer calls, as go test -short does: limits above a few hundred
	// overrides or clients are not exceeded, and rare races are less likely found.
	Short bool
}

// ErrAbsent is wrapped by the error of a case that does not apply, because the store lacks
// an optional interface or capability.
var ErrAbsent = errors.New("storetest: optional capability absent")

// Case is one requirement on a store.
type Case struct {
	// Name starts with the number of a clause of Store, or with "lister", "clients", "eraser",
	// "feed", "versioner", "notifier", "history" or "errors".
	Name string
	// Rule is the sentence of the documentation that the case checks.
	Rule string
	// Check returns nil if the store complies with the rule, and otherwise an error that
	// contains the rule or wraps [ErrAbsent].
	Check func(ctx context.Context, e Env) error
}
