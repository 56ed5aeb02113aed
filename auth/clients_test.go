package auth_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/auth"
	"example.com/go-webhookcfg/webhookcfg"
)

// costOf returns the cost of one check: plain hashes, comparisons, derivations and their
// rounds.
func costOf(t *testing.T, w *auth.Work, v webhookcfg.CredentialVerifier, id, secret string) [4]int64 {
	t.Helper()
	before := w.Counts()
	_, _ = v.Verify(t.Context(), id, secret)
	after := w.Counts()
	for i := range after {
		after[i] -= before[i]
	}
	return after
}

func TestRefusalsCostTheSame(t *testing.T) {
	w := new(auth.Work)
	v, err := auth.CountedStatic(w,
		auth.Credential{ID: "one", Secrets: []string{"s1"}},
		auth.Credential{ID: "three", Secrets: []string{"s1", "s2", "s3"}},
		auth.Credential{ID: "gone", Secrets: []string{"s1", "s2", "s3", "s4"}, Disabled: true},
	)
	if err != nil {
		t.Fatal(err)
	}
	want := [4]int64{1, 3, 0, 0}
	for _, presented := range [][2]string{
		{"unknown", "s1"},
		{"one", "wrong"},
		{"three", "wrong"},
		{"gone", "s1"},
		{"gone", "wrong"},
		{"", ""},
		{"unknown", strings.Repeat("x", 3000)},
		// The position of the secret makes no difference either.
		{"one", "s1"},
		{"three", "s1"},
		{"three", "s2"},
		{"three", "s3"},
	} {
		if got := costOf(t, w, v, presented[0], presented[1]); got != want {
			t.Errorf("%s costs %v, want %v", presented[0], got, want)
		}
	}
}

// TestMixedKindsCostTheSame: a check that fails costs as much as the costliest client of
// each kind, even if rounds differ.
func TestMixedKindsCostTheSame(t *testing.T) {
	const few, many = 600_000, 1_000_000
	w := new(auth.Work)
	v, err := auth.OpenCountedFile(w, writeFile(t,
		mustLine(auth.SHA256Line("plain", "p1")),
		mustLine(auth.SHA256Line("plain", "p2")),
		auth.CheapPBKDF2Line("few", "f", few),
		auth.CheapPBKDF2Line("both", "b1", few),
		auth.CheapPBKDF2Line("both", "b2", many),
		mustLine(auth.SHA256Line("both", "b3")),
		auth.CheapPBKDF2Line("gone", "g", 9_000_000),
		"gone:disabled",
	), nil)
	if err != nil {
		t.Fatal(err)
	}
	slow := func(derivations int64) [4]int64 { return [4]int64{1, 2 + 2, derivations, many + few} }
	for _, tt := range []struct {
		id, secret string
		cost       [4]int64
	}{
		{"unknown", "p1", slow(2)},
		{"plain", "wrong", slow(2)},
		{"gone", "g", slow(2)},
		{"both", "wrong", slow(2)},
		{"both", "b1", slow(2)},
		{"both", "b2", slow(2)},
		// A hash of fewer rounds is made up for by a second derivation.
		{"few", "wrong", slow(3)},
		{"few", "f", slow(3)},
		// A client with a generated secret waits for no slow hash.
		{"plain", "p1", [4]int64{1, 2, 0, 0}},
		{"both", "b3", [4]int64{1, 2, 0, 0}},
	} {
		if got := costOf(t, w, v, tt.id, tt.secret); got != tt.cost {
			t.Errorf("%s with %s costs %v, want %v", tt.id, tt.secret, got, tt.cost)
		}
	}
	mustSignIn(t, v, "few", "f", "few")
	mustSignIn(t, v, "both", "b1", "both")
	mustSignIn(t, v, "both", "b2", "both")
	mustSignIn(t, v, "both", "b3", "both")
	mustRefuse(t, v, "plain", "f")
	mustRefuse(t, v, "few", "b1")
}

func mustLine(line string, err error) string {
	if err != nil {
		panic(err)
	}
	return line
}

// writeFile writes a credential file that only its owner can read.
func writeFile(t testing.TB, lines ...string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "credentials")
	rewrite(t, path, lines...)
	return path
}

// rewrite replaces a credential file by renaming a new one.
func rewrite(t testing.TB, path string, lines ...string) {
	t.Helper()
	next := path + ".next"
	if err := os.WriteFile(next, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, path); err != nil {
		t.Fatal(err)
	}
}

// openSlow opens a file whose derivations take a second each; peak is the maximum
// number of concurrent ones.
func openSlow(t *testing.T, slots int, lines ...string) (f *auth.File, w *auth.Work, peak *atomic.Int64) {
	t.Helper()
	var busy atomic.Int64
	peak = new(atomic.Int64)
	w = &auth.Work{OnDerive: func() {
		now := busy.Add(1)
		for old := peak.Load(); old < now && !peak.CompareAndSwap(old, now); old = peak.Load() {
		}
		time.Sleep(time.Second)
		busy.Add(-1)
	}}
	f, err := auth.OpenCountedFile(w, writeFile(t, lines...), &auth.FileOptions{SlowHashes: slots})
	if err != nil {
		t.Fatal(err)
	}
	return f, w, peak
}

func TestSlowHashesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _, peak := openSlow(t, 2, auth.CheapPBKDF2Line("human", "h", 600_000), sha256Line("machine", "m"))
		start := time.Now()
		var group sync.WaitGroup
		for range 5 {
			group.Go(func() { mustSignIn(t, f, "human", "h", "human") })
			group.Go(func() { mustRefuse(t, f, "unknown", "h") })
		}
		synctest.Wait()
		mustSignIn(t, f, "machine", "m", "machine")
		if took := time.Since(start); took != 0 {
			t.Errorf("a client without a slow hash waited %v", took)
		}
		group.Wait()
		if got, took := peak.Load(), time.Since(start); got != 2 || took != 5*time.Second {
			t.Errorf("%d concurrent slow hashes, %v for ten of one second", got, took)
		}
	})
}

// TestSlowHashesEndWithTheContext: while waiting, and between two hashes of one check.
func TestSlowHashesEndWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, w, _ := openSlow(t, 1,
			auth.CheapPBKDF2Line("human", "h1", 600_000),
			auth.CheapPBKDF2Line("human", "h2", 600_000))
		verify := func(timeout time.Duration) (time.Duration, error) {
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			defer cancel()
			start := time.Now()
			_, err := f.Verify(ctx, "human", "h1")
			return time.Since(start), err
		}
		go func() {
			if took, err := verify(500 * time.Millisecond); took != time.Second || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("between two hashes: %v after %v", err, took)
			}
		}()
		synctest.Wait()
		if took, err := verify(time.Millisecond); took != time.Millisecond || !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, webhookcfg.ErrInvalidCredentials) {
			t.Errorf("waiting: %v after %v", err, took)
		}
		time.Sleep(time.Minute)
		if got := w.Derivations.Load(); got != 1 {
			t.Errorf("%d derivations, want 1", got)
		}
		if took, err := verify(time.Hour); took != 2*time.Second || err != nil {
			t.Errorf("free again: %v after %v", err, took)
		}
	})
}
