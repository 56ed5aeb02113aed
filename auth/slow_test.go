package auth_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/auth"
	"example.com/go-webhookcfg/webhookcfg"
)

// openSlow opens a file whose derivations take a second each; peak is how many of
// them were made at a time at most.
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
			group.Go(func() { mustRefuse(t, f, "nobody", "h") })
		}
		synctest.Wait()
		mustSignIn(t, f, "machine", "m", "machine")
		if took := time.Since(start); took != 0 {
			t.Errorf("who needs no slow hash waited %v for others", took)
		}
		group.Wait()
		if got, took := peak.Load(), time.Since(start); got != 2 || took != 5*time.Second {
			t.Errorf("%d slow hashes at a time, %v for ten of a second", got, took)
		}
	})
}

// TestSlowHashesEndWithTheContext: in line, and between two hashes of one check.
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
			t.Errorf("in line: %v after %v", err, took)
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
