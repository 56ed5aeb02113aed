package healthcheck_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/internal/healthcheck"
)

var errSick = errors.New("sick")

// TestOncePerSecond: callers get a result that is at most a second late, and one examination
// in a second starts.
func TestOncePerSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c healthcheck.Check
		var state error
		examined := 0
		ask := func() error {
			return c.Do(t.Context(), func(context.Context) error { examined++; return state })
		}
		for second := range 4 {
			state = nil
			if second%2 == 1 {
				state = errSick
			}
			for range 10 {
				if err := ask(); err != state {
					t.Errorf("second %d: got %v, want %v", second, err, state)
				}
				time.Sleep(100 * time.Millisecond)
			}
			if examined != second+1 {
				t.Errorf("second %d: %d examinations", second, examined)
			}
		}
	})
}

// TestOneAtATime: callers share an examination that takes long, and one that gives up neither
// ends it nor starts another.
func TestOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c healthcheck.Check
		examined := 0
		slow := func(context.Context) error { examined++; time.Sleep(3 * time.Second); return errSick }
		var callers sync.WaitGroup
		for i := range 10 {
			callers.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i+1)*time.Second/2)
				defer cancel()
				err := c.Do(ctx, slow)
				want := errSick
				if i < 5 {
					want = context.DeadlineExceeded
				}
				if err != want {
					t.Errorf("caller %d: got %v, want %v", i, err, want)
				}
			})
			time.Sleep(time.Millisecond)
		}
		callers.Wait()
		if examined != 1 {
			t.Errorf("%d examinations at the same time", examined)
		}
	})
}

// TestHang: an examination that only its context ends is over after five seconds, and its
// error is the result.
func TestHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c healthcheck.Check
		started := time.Now()
		err := c.Do(t.Context(), func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(started) != 5*time.Second {
			t.Errorf("got %v after %v", err, time.Since(started))
		}
		if err := c.Do(t.Context(), func(context.Context) error { return nil }); err != nil {
			t.Errorf("the next call: %v", err)
		}
	})
}

// TestHangForever: nobody waits for an examination that doesn't end with its context, and no
// second one starts.
func TestHangForever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c healthcheck.Check
		var examined atomic.Int64
		started, release := time.Now(), make(chan struct{})
		defer close(release)
		for range 2 {
			err := c.Do(t.Context(), func(context.Context) error { examined.Add(1); <-release; return nil })
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v after %v", err, time.Since(started))
			}
		}
		if waited := time.Since(started); waited != 12*time.Second || examined.Load() != 1 {
			t.Errorf("two callers waited %v, for %d examinations", waited, examined.Load())
		}
	})
}
