package keylock

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestLocks: the calls for a key are admitted one at a time in the order of the
// calls, whichever contexts end meanwhile, and those for another key immediately. No
// entry remains.
func TestLocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var locks Locks
		unlock, err := locks.Lock(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		var (
			waiters        sync.WaitGroup
			admitted, want []int
		)
		for n := range 20 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			if n%3 == 0 {
				ctx, cancel = context.WithTimeout(t.Context(), time.Millisecond)
			} else {
				want = append(want, n)
			}
			waiters.Go(func() {
				defer cancel()
				unlock, err := locks.Lock(ctx, "a")
				if ended := errors.Is(err, context.DeadlineExceeded); ended != (n%3 == 0) {
					t.Errorf("waiter %d: %v", n, err)
				}
				if err == nil {
					admitted = append(admitted, n) // a race if two were admitted
					time.Sleep(time.Millisecond)
					unlock()
				}
			})
			synctest.Wait()
		}
		another, err := locks.Lock(t.Context(), "b")
		if err != nil {
			t.Fatal(err)
		}
		another()
		time.Sleep(time.Second)
		synctest.Wait()
		if len(admitted) > 0 || len(locks.keys) != 1 {
			t.Errorf("while the lock is held, %v are admitted, and %d keys have an entry", admitted, len(locks.keys))
		}
		unlock()
		waiters.Wait()
		if !slices.Equal(admitted, want) {
			t.Errorf("admitted %v, want %v", admitted, want)
		}
		if len(locks.keys) > 0 {
			t.Errorf("%d entries remain", len(locks.keys))
		}
	})
}
