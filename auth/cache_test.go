package auth_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/auth"
	"example.com/go-webhookcfg/webhookcfg"
)

// counted is a verifier for the id "c" with the secret "s" that counts its calls and can
// be delayed.
type counted struct {
	calls    atomic.Int64
	ended    atomic.Int64 // calls whose context ended
	revision atomic.Uint64
	delay    time.Duration
	err      error                             // instead of a verdict
	verdict  func() (webhookcfg.Client, error) // instead of all else
}

func (c *counted) Revision() uint64 { return c.revision.Load() }

func (c *counted) Verify(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
	c.calls.Add(1)
	if c.verdict != nil {
		return c.verdict()
	}
	if c.delay > 0 {
		select {
		case <-ctx.Done():
			c.ended.Add(1)
			return webhookcfg.Client{}, ctx.Err()
		case <-time.After(c.delay):
		}
	}
	switch {
	case ctx.Err() != nil:
		return webhookcfg.Client{}, ctx.Err()
	case c.err != nil:
		return webhookcfg.Client{}, c.err
	case id == "c" && secret == "s":
		return webhookcfg.Client{ID: "owner"}, nil
	default:
		return webhookcfg.Client{}, webhookcfg.ErrInvalidCredentials
	}
}

func (c *counted) wantCalls(t *testing.T, want int64) {
	t.Helper()
	if got := c.calls.Load(); got != want {
		t.Errorf("the wrapped verifier was called %d times, want %d", got, want)
	}
}

func mustCache(t testing.TB, v webhookcfg.CredentialVerifier, options *auth.CacheOptions) *auth.Cache {
	t.Helper()
	cached, err := auth.NewCache(v, options)
	if err != nil {
		t.Fatal(err)
	}
	return cached
}

func TestCacheRemembersSuccessesAlone(t *testing.T) {
	inner := new(counted)
	v := mustCache(t, inner, nil)
	for range 3 {
		mustSignIn(t, v, "c", "s", "owner")
	}
	inner.wantCalls(t, 1)
	for range 3 {
		mustRefuse(t, v, "c", "wrong")
		mustRefuse(t, v, "unknown", "s")
	}
	inner.wantCalls(t, 1+6)
	inner.err = errors.New("down")
	if _, err := v.Verify(t.Context(), "c", "other"); !errors.Is(err, inner.err) {
		t.Errorf("got %v, want the error of the verifier", err)
	}
	mustSignIn(t, v, "c", "s", "owner")
	if v.Remembered() != 1 {
		t.Errorf("remembers %d, want 1", v.Remembered())
	}
}

// TestCacheKeepsPairsApart: if the same bytes are split elsewhere, they're another
// credential.
func TestCacheKeepsPairsApart(t *testing.T) {
	inner := auth.Func(func(_ context.Context, id, secret string) (webhookcfg.Client, error) {
		return webhookcfg.Client{ID: fmt.Sprintf("%q %q", id, secret)}, nil
	})
	v := mustCache(t, inner, nil)
	for range 2 {
		for _, pair := range [][2]string{{"a", "bc"}, {"ab", "c"}, {"a", "b"}, {"ab", "cd"}, {"a", "bcd"}} {
			mustSignIn(t, v, pair[0], pair[1], fmt.Sprintf("%q %q", pair[0], pair[1]))
		}
	}
}

func TestCacheExpires(t *testing.T) {
	for _, ttl := range []time.Duration{0, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			inner := new(counted)
			v := mustCache(t, inner, &auth.CacheOptions{TTL: ttl})
			whole := max(ttl, 5*time.Minute)
			if ttl > 0 {
				whole = ttl
			}
			mustSignIn(t, v, "c", "s", "owner")
			time.Sleep(whole - 1)
			mustSignIn(t, v, "c", "s", "owner") // does not extend it
			inner.wantCalls(t, 1)
			time.Sleep(time.Nanosecond)
			mustSignIn(t, v, "c", "s", "owner")
			inner.wantCalls(t, 2)
		})
	}
}

func TestCacheIsBounded(t *testing.T) {
	var calls int
	inner := auth.Func(func(_ context.Context, id, _ string) (webhookcfg.Client, error) {
		calls++
		return webhookcfg.Client{ID: id}, nil
	})
	v := mustCache(t, inner, &auth.CacheOptions{Size: 3})
	for _, id := range []string{"1", "2", "3", "1", "4", "1", "3"} { // 4 evicts 2
		mustSignIn(t, v, id, "s", id)
	}
	if calls != 4 || v.Remembered() != 3 {
		t.Errorf("%d calls, %d remembered", calls, v.Remembered())
	}
	mustSignIn(t, v, "2", "s", "2")
	if calls != 5 {
		t.Errorf("%d calls, want 5", calls)
	}

	v = mustCache(t, inner, nil)
	for i := range 10_000 + 1 {
		mustSignIn(t, v, strconv.Itoa(i), "s", strconv.Itoa(i))
	}
	if v.Remembered() != 10_000 {
		t.Errorf("%d remembered by default, want 10000", v.Remembered())
	}
}

// TestCacheSeed: you can't compute the cache's keys from a guess.
func TestCacheSeed(t *testing.T) {
	a, b := mustCache(t, new(counted), nil), mustCache(t, new(counted), nil)
	if a.Digest("c", "s") == b.Digest("c", "s") {
		t.Error("two caches hold a credential under the same digest")
	}
}

// TestCacheIsNoOracle: a guess from another source than the client's isn't accepted once the
// throttle limits it.
func TestCacheIsNoOracle(t *testing.T) {
	for _, tt := range []struct {
		client, guesser string
		oracle          bool
	}{
		{"192.0.2.1", "192.0.2.2", false},
		{"2001:db8:0:1::1", "2001:db8:0:2::1", false},
		{"2001:db8:0:1::1", "192.0.2.2", false},
		// The cache can't tell them apart.
		{"192.0.2.1", "192.0.2.1", true},
		{"2001:db8:0:1::1", "2001:db8:0:1::2", true},
	} {
		synctest.Test(t, func(t *testing.T) {
			inner := new(counted)
			v := mustCache(t, mustThrottle(t, inner, &tight), nil)
			wantWait(t, v, tt.client, "c", "s", 0)
			for range 100 {
				_ = waitOf(t, v, tt.guesser, "c", "wrong")
			}
			inner.wantCalls(t, 1+3)
			if accepted := waitOf(t, v, tt.guesser, "c", "s") == 0; accepted != tt.oracle {
				t.Errorf("client at %s: the right guess from %s was accepted: %v, want %v", tt.client, tt.guesser, accepted, tt.oracle)
			}
			wantWait(t, v, tt.client, "c", "s", 0)
			inner.wantCalls(t, 1+3)
		})
	}
}

// TestCacheInsideThrottle: with the throttle outside, no guess is accepted once it's limited,
// whatever its source. The client isn't accepted either.
func TestCacheInsideThrottle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := new(counted)
		v := mustThrottle(t, mustCache(t, inner, nil), &tight)
		for range 3 {
			wantWait(t, v, "192.0.2.1", "c", "s", 0)
			wantWait(t, v, "192.0.2.1", "c", "wrong", 0)
		}
		inner.wantCalls(t, 1+3)
		wantWait(t, v, "192.0.2.1", "c", "s", time.Minute)
	})
}

// TestCacheOutlastsNeighbours: a client that signs in at least once per TTL isn't limited by
// guesses from its own address, even if they never stop.
func TestCacheOutlastsNeighbours(t *testing.T) {
	for _, idle := range []time.Duration{30 * time.Second, 5 * time.Minute, 10*time.Minute - 1, 10 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			v := mustCache(t, mustThrottle(t, new(counted), nil), nil)
			wantWait(t, v, "192.0.2.1", "c", "s", 0)
			last := time.Now()
			guess := func() {
				for range 100 {
					_ = waitOf(t, v, "192.0.2.1", "c", "wrong")
				}
			}
			for time.Since(last) < time.Hour {
				time.Sleep(idle)
				guess()
				limited := waitOf(t, v, "192.0.2.1", "c", "s") > 0
				if want := idle >= 10*time.Minute; limited != want {
					t.Errorf("idle for %v: limited %v, want %v", idle, limited, want)
				}
			}
		})
	}
}

// TestCacheChargesRevoked: a revoked credential is checked once without a token. After that
// it's a guess like any other.
func TestCacheChargesRevoked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := new(counted)
		v := mustCache(t, mustThrottle(t, inner, &tight), nil)
		wantWait(t, v, "192.0.2.1", "c", "s", 0)
		inner.err = errors.New("down") // the past success counts until a verdict
		inner.revision.Add(1)
		for range 10 {
			wantWait(t, v, "192.0.2.1", "c", "s", 0)
		}
		inner.err = webhookcfg.ErrInvalidCredentials
		for range 1 + 3 {
			wantWait(t, v, "192.0.2.1", "c", "s", 0)
		}
		wantWait(t, v, "192.0.2.1", "c", "s", time.Minute)
		inner.wantCalls(t, 1+10+1+3)
		if v.Remembered() != 0 {
			t.Error("a refused credential is remembered")
		}
	})
}

// TestRevokedDuringCheck: if a check started before a revocation, none of its callers signs
// in after it.
func TestRevokedDuringCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var revision atomic.Uint64
		var revoked atomic.Bool
		inner := auth.Func(func(context.Context, string, string) (webhookcfg.Client, error) {
			refused := revoked.Load()
			time.Sleep(time.Second)
			if refused {
				return webhookcfg.Client{}, webhookcfg.ErrInvalidCredentials
			}
			return webhookcfg.Client{ID: "owner"}, nil
		})
		v := mustCache(t, inner, &auth.CacheOptions{Revision: revision.Load})
		var group sync.WaitGroup
		for range 3 {
			group.Go(func() { mustRefuse(t, v, "c", "s") })
		}
		synctest.Wait()
		revoked.Store(true)
		revision.Add(1)
		group.Wait()
	})
}

// TestRevisionNeverSettles: Verify returns even if the version changes all the time.
func TestRevisionNeverSettles(t *testing.T) {
	inner := new(counted)
	v := mustCache(t, inner, &auth.CacheOptions{Revision: func() uint64 { return inner.revision.Add(1) }})
	if client, err := v.Verify(t.Context(), "c", "s"); err == nil || client.ID != "" || errors.Is(err, webhookcfg.ErrInvalidCredentials) {
		t.Errorf("the revision changes during every check: got %v, %v, want an error that is no refusal", client, err)
	}
	inner.wantCalls(t, 3)
}

// TestRevisionThroughAWrapper: if a wrapper hides a revision, you can pass it as an option.
func TestRevisionThroughAWrapper(t *testing.T) {
	path := writeFile(t, sha256Line("c", "old"))
	f := mustOpen(t, path, nil)
	v := mustCache(t, struct{ webhookcfg.CredentialVerifier }{f}, &auth.CacheOptions{Revision: f.Revision})
	mustSignIn(t, v, "c", "old", "c")
	rewrite(t, path, sha256Line("c", "new"))
	if err := f.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	mustRefuse(t, v, "c", "old")
	if v.Revision() != f.Revision() {
		t.Errorf("revision %d, want %d", v.Revision(), f.Revision())
	}
}

func TestCacheIsInvalidated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := &counted{delay: time.Second}
		throttled := mustThrottle(t, inner, nil) // forwards the revision
		v := mustCache(t, throttled, nil)
		from := from(t, "192.0.2.1")
		verify := func() {
			if _, err := v.Verify(from, "c", "s"); err != nil {
				t.Error(err)
			}
		}
		verify()
		verify()
		inner.wantCalls(t, 1)
		inner.revision.Add(1)
		verify()
		inner.wantCalls(t, 2)

		// A check that was under way is made again.
		inner.revision.Add(1)
		go verify()
		synctest.Wait()
		inner.revision.Add(1)
		time.Sleep(time.Minute)
		verify()
		inner.wantCalls(t, 4)

		// Nobody joins an outdated check, but its callers join a new one.
		inner.revision.Add(1)
		go verify()
		time.Sleep(time.Second / 2)
		inner.revision.Add(1)
		verify()
		synctest.Wait()
		inner.wantCalls(t, 6)
	})
}

// TestCacheCoalesces: concurrent callers with one credential share a check, whether its
// client exists or not.
func TestCacheCoalesces(t *testing.T) {
	for _, id := range []string{"c", "unknown"} {
		for _, secret := range []string{"s", "wrong"} {
			synctest.Test(t, func(t *testing.T) {
				inner := &counted{delay: time.Second}
				v := mustCache(t, inner, nil)
				start := time.Now()
				var group sync.WaitGroup
				for range 10 {
					group.Go(func() {
						_, err := v.Verify(t.Context(), id, secret)
						if good := id == "c" && secret == "s"; (err == nil) != good {
							t.Errorf("%s, %s: got %v", id, secret, err)
						}
					})
				}
				group.Wait()
				inner.wantCalls(t, 1)
				if took := time.Since(start); took != time.Second {
					t.Errorf("took %v", took)
				}
			})
		}
	}
}

func TestCacheDoesNotCoalesceOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := &counted{delay: time.Second}
		v := mustCache(t, inner, nil)
		var group sync.WaitGroup
		for _, presented := range [][3]string{
			{"c", "wrong", "192.0.2.1"},
			{"c", "wrong2", "192.0.2.1"},
			{"d", "wrong", "192.0.2.1"},
			// From another source, a wrapped throttle can give another result.
			{"c", "wrong", "192.0.2.2"},
		} {
			group.Go(func() { _, _ = v.Verify(from(t, presented[2]), presented[0], presented[1]) })
		}
		group.Wait()
		inner.wantCalls(t, 4)
	})
}

// TestCacheCheckHasADeadline: if all callers of a check have left, it goes on, others can
// join it, and it ends by itself.
func TestCacheCheckHasADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := &counted{delay: time.Hour}
		v := mustCache(t, inner, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := v.Verify(ctx, "c", "s"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want that the context ended", err)
		}
		if _, err := v.Verify(t.Context(), "c", "s"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		inner.wantCalls(t, 1)
		if inner.ended.Load() != 1 {
			t.Error("the check goes on after its last caller left")
		}
		inner.delay = 0
		mustSignIn(t, v, "c", "s", "owner")
		inner.wantCalls(t, 2)
	})
}

func TestCacheOptions(t *testing.T) {
	if _, err := auth.NewCache(nil, nil); err == nil {
		t.Error("accepted a nil verifier")
	}
	for _, options := range []auth.CacheOptions{{TTL: -1}, {Size: -1}} {
		if _, err := auth.NewCache(new(counted), &options); err == nil {
			t.Errorf("accepted %+v", options)
		}
	}
	if got := mustCache(t, auth.Func(nil), nil).Revision(); got != 0 {
		t.Errorf("revision %d of a verifier without one", got)
	}
}

// from returns the context of a request from an address.
func from(t testing.TB, addr string) context.Context {
	return auth.ContextWithSource(t.Context(), netip.MustParseAddr(addr))
}
