package auth_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/auth"
	"example.com/go-webhookcfg/webhookcfg"
)

// flood presents wrong secrets for n unknown ids at the same time, the i-th from the
// address source(i). It counts those that were not checked.
func flood(t *testing.T, v webhookcfg.CredentialVerifier, n int, source func(i int) netip.Addr) (busy *atomic.Int64, wait func()) {
	t.Helper()
	busy = new(atomic.Int64)
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() {
			_, err := v.Verify(auth.ContextWithSource(t.Context(), source(i)), fmt.Sprint("unknown", i), "x")
			switch {
			case errors.Is(err, auth.ErrBusy) && !errors.Is(err, webhookcfg.ErrInvalidCredentials):
				busy.Add(1)
			case !errors.Is(err, webhookcfg.ErrInvalidCredentials):
				t.Errorf("a flood of guesses: got %v, want a refusal or ErrBusy", err)
			}
		})
		synctest.Wait() // they arrive one after another
	}
	return busy, group.Wait
}

func ipv4(i int) netip.Addr { return netip.AddrFrom4([4]byte{198, 51, 100, byte(i)}) }

func signInFrom(t *testing.T, v webhookcfg.CredentialVerifier, source, id, secret string) (time.Duration, error) {
	start := time.Now()
	_, err := v.Verify(from(t, source), id, secret)
	return time.Since(start), err
}

// TestTrustedSourcesHashNext: a client that has signed in from its address doesn't wait for
// the checks of strangers.
func TestTrustedSourcesHashNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _, _ := openSlow(t, 1, auth.CheapPBKDF2Line("human", "h", 600_000))
		v := mustThrottle(t, f, nil)
		if _, err := signInFrom(t, v, "192.0.2.1", "human", "h"); err != nil {
			t.Fatal(err)
		}
		busy, wait := flood(t, v, 50, ipv4)
		if got := busy.Load(); got != 50-1-16 {
			t.Errorf("%d of 50 checks found the queue full, want 33", got)
		}
		if took, err := signInFrom(t, v, "192.0.2.1", "human", "h"); took != 2*time.Second || err != nil {
			t.Errorf("from the known source: %v after %v, want 2s", err, took)
		}
		if got := busy.Load(); got != 50-16 {
			t.Errorf("%d of 50 checks found the queue full, want 34", got)
		}
		wait()
	})
}

// TestQueueIsShared: a source can't keep out another one by filling the queue.
func TestQueueIsShared(t *testing.T) {
	for name, source := range map[string]func(i int) netip.Addr{
		"3 addresses": func(i int) netip.Addr { return ipv4(i % 3) },
		"IPv6 /48": func(i int) netip.Addr {
			return netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 0, 1, 0, byte(i), 15: 1})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, _, _ := openSlow(t, 1, auth.CheapPBKDF2Line("human", "h", 600_000))
				_, wait := flood(t, f, 50, source)
				if took, err := signInFrom(t, f, "192.0.2.1", "human", "h"); took != 17*time.Second || err != nil {
					t.Errorf("from another source: %v after %v, want 17s", err, took)
				}
				wait()
			})
		})
	}
}

// TestQueueIsFull: if all sources have as many checks, or there are no sources, the check
// that finds the queue full is refused.
func TestQueueIsFull(t *testing.T) {
	for name, source := range map[string]func(i int) netip.Addr{
		"no source":         func(int) netip.Addr { return netip.Addr{} },
		"different sources": ipv4,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, _, _ := openSlow(t, 1, auth.CheapPBKDF2Line("human", "h", 600_000))
				busy, wait := flood(t, f, 17, source)
				ctx := auth.ContextWithSource(t.Context(), source(20))
				if _, err := f.Verify(ctx, "human", "h"); !errors.Is(err, auth.ErrBusy) {
					t.Errorf("got %v, want ErrBusy", err)
				}
				wait()
				if got := busy.Load(); got != 0 {
					t.Errorf("%d of the checks in the queue were not made", got)
				}
			})
		})
	}
}

// lateContext is a context that ends while a select statement evaluates its Done channel,
// which takes 2 seconds.
type lateContext struct {
	context.Context
	ended chan struct{}
}

func (c *lateContext) Done() <-chan struct{} {
	time.Sleep(2 * time.Second)
	close(c.ended)
	return c.ended
}

func (c *lateContext) Err() error {
	select {
	case <-c.ended:
		return context.Canceled
	default:
		return nil
	}
}

// TestSlotIsNotLost by a check whose context ends as it gets the slot.
func TestSlotIsNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _, _ := openSlow(t, 1, auth.CheapPBKDF2Line("human", "h", 600_000))
		for range 20 { // a select statement with two ready cases picks one at random
			go mustSignIn(t, f, "human", "h", "human")
			synctest.Wait()
			_, _ = f.Verify(&lateContext{t.Context(), make(chan struct{})}, "human", "h")
		}
		if took, err := signInFrom(t, f, "192.0.2.1", "human", "h"); took != time.Second || err != nil {
			t.Errorf("%v after %v, want 1s", err, took)
		}
	})
}
