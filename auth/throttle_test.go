package auth_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/auth"
	"example.com/go-webhookcfg/webhookcfg"
)

func mustThrottle(t testing.TB, v webhookcfg.CredentialVerifier, options *auth.ThrottleOptions) *auth.Throttled {
	t.Helper()
	throttled, err := auth.Throttle(v, options)
	if err != nil {
		t.Fatal(err)
	}
	return throttled
}

// tight holds rates that a test exceeds quickly.
var tight = auth.ThrottleOptions{
	PerClientAndSource: auth.Rate{Burst: 3, Every: time.Minute},
	PerSource:          auth.Rate{Burst: 10, Every: 10 * time.Second},
	PerClient:          auth.Rate{Burst: 30, Every: time.Second},
}

// waitOf tries to sign in and returns the RetryAfter of a [auth.LimitError], 0 if there
// is none.
func waitOf(t *testing.T, v webhookcfg.CredentialVerifier, source, id, secret string) time.Duration {
	t.Helper()
	_, err := v.Verify(from(t, source), id, secret)
	var limit interface{ RetryAfter() time.Duration }
	if !errors.As(err, &limit) {
		return 0
	}
	if wait := limit.RetryAfter(); wait <= 0 || !strings.Contains(err.Error(), wait.String()) || errors.Is(err, webhookcfg.ErrInvalidCredentials) {
		t.Errorf("limited with %q, wait %v", err, wait)
	}
	return limit.RetryAfter()
}

func wantWait(t *testing.T, v webhookcfg.CredentialVerifier, source, id, secret string, want time.Duration) {
	t.Helper()
	if got := waitOf(t, v, source, id, secret); got != want {
		t.Errorf("%s from %s: wait %v, want %v", id, source, got, want)
	}
}

func TestThrottlePair(t *testing.T) {
	for _, id := range []string{"c", "unknown"} { // no difference
		synctest.Test(t, func(t *testing.T) {
			inner := new(counted)
			v := mustThrottle(t, inner, &tight)
			for range 3 {
				wantWait(t, v, "192.0.2.1", id, "wrong", 0)
			}
			wantWait(t, v, "192.0.2.1", id, "wrong", time.Minute)
			inner.wantCalls(t, 3) // none for limited attempts
			time.Sleep(time.Minute - 1)
			wantWait(t, v, "192.0.2.1", id, "wrong", 1)
			time.Sleep(time.Nanosecond)
			wantWait(t, v, "192.0.2.1", id, "wrong", 0)
			wantWait(t, v, "192.0.2.1", id, "wrong", time.Minute)
			time.Sleep(time.Hour)
			for range 3 {
				wantWait(t, v, "192.0.2.1", id, "wrong", 0)
			}
			wantWait(t, v, "192.0.2.1", id, "wrong", time.Minute)
		})
	}
}

// TestThrottleSparesTheOwner: a flood on one id from one address is stopped, and the
// owner signs in from anywhere else.
func TestThrottleSparesTheOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := new(counted)
		v := mustThrottle(t, inner, &tight)
		for range 10_000 {
			_ = waitOf(t, v, "192.0.2.1", "c", "wrong")
		}
		inner.wantCalls(t, 3)
		if waitOf(t, v, "192.0.2.1", "c", "s") == 0 {
			t.Error("the flooded pair of id and source is not limited")
		}
		wantWait(t, v, "192.0.2.2", "c", "s", 0)
		wantWait(t, v, "2001:db8::1", "c", "s", 0)
		wantWait(t, v, "192.0.2.1", "other", "s", 0)
	})
}

func TestThrottleSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := mustThrottle(t, new(counted), &tight)
		for i := range 10 {
			wantWait(t, v, "192.0.2.1", fmt.Sprint(i), "wrong", 0)
		}
		wantWait(t, v, "192.0.2.1", "c", "s", 10*time.Second)
		wantWait(t, v, "192.0.2.2", "c", "s", 0)
		time.Sleep(10 * time.Second)
		wantWait(t, v, "192.0.2.1", "c", "s", 0)
	})
}

// TestThrottleNetworks: the holder of an address cannot multiply it.
func TestThrottleNetworks(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		same bool
	}{
		{"2001:db8:0:1::1", "2001:db8:0:1:ffff:ffff:ffff:ffff", true},
		{"2001:db8:0:1::1", "2001:db8:0:2::1", false},
		{"192.0.2.1", "::ffff:192.0.2.1", true},
		{"192.0.2.1", "192.0.2.2", false},
		{"fe80::1%eth0", "fe80::1%eth1", true},
	} {
		synctest.Test(t, func(t *testing.T) {
			v := mustThrottle(t, new(counted), &tight)
			for range 3 {
				wantWait(t, v, tt.a, "c", "wrong", 0)
			}
			if limited := waitOf(t, v, tt.b, "c", "wrong") > 0; limited != tt.same {
				t.Errorf("%s and %s share a bucket: %v, want %v", tt.a, tt.b, limited, tt.same)
			}
		})
	}
}

// TestThrottleClient: a flood on one id from many addresses is limited too, except for
// sources that the id has signed in from.
func TestThrottleClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := new(counted)
		v := mustThrottle(t, inner, &tight)
		wantWait(t, v, "198.51.100.1", "c", "s", 0)
		inner.err = errors.New("down") // which makes no source known
		wantWait(t, v, "198.51.100.3", "c", "s", 0)
		inner.err = nil
		for i := range 200 {
			_ = waitOf(t, v, fmt.Sprintf("192.0.2.%d", i), "c", "wrong")
		}
		inner.wantCalls(t, 2+30)
		wantWait(t, v, "198.51.100.1", "c", "s", 0)
		wantWait(t, v, "198.51.100.2", "c", "s", time.Second)
		wantWait(t, v, "198.51.100.3", "c", "s", time.Second)
		wantWait(t, v, "198.51.100.2", "other", "s", 0)

		// Guesses from a known source are still limited.
		for range 3 {
			wantWait(t, v, "198.51.100.1", "c", "wrong", 0)
		}
		wantWait(t, v, "198.51.100.1", "c", "s", time.Minute)
	})
}

// TestThrottleGivesBack: only checks that failed, or may have failed, cost a token.
func TestThrottleGivesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := new(counted)
		v := mustThrottle(t, inner, &tight)
		for range 100 {
			wantWait(t, v, "192.0.2.1", "c", "s", 0)
		}
		inner.err = errors.New("down")
		for range 100 {
			wantWait(t, v, "192.0.2.1", "d", "wrong", 0)
		}
		inner.wantCalls(t, 200)

		inner.err, inner.delay = nil, time.Second
		for i := range 4 {
			ctx, cancel := context.WithTimeout(from(t, "192.0.2.1"), time.Millisecond)
			_, err := v.Verify(ctx, "c", "wrong")
			cancel()
			if limited := !errors.Is(err, context.DeadlineExceeded); limited != (i == 3) {
				t.Errorf("canceled %d times: %v", i, err)
			}
		}
	})
}

func TestThrottleConcurrent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := &counted{delay: time.Second}
		v := mustThrottle(t, inner, &tight)
		var group sync.WaitGroup
		for range 100 {
			group.Go(func() { _ = waitOf(t, v, "192.0.2.1", "c", "wrong") })
		}
		group.Wait()
		inner.wantCalls(t, 3)
	})
}

func TestThrottleIsBounded(t *testing.T) {
	options := tight
	options.Size = 50
	inner := new(counted)
	v := mustThrottle(t, auth.Func(func(ctx context.Context, id, _ string) (webhookcfg.Client, error) {
		return inner.Verify(ctx, "c", map[bool]string{true: "s", false: "wrong"}[len(id)%2 == 0])
	}), &options)
	for i := range 1000 {
		_ = waitOf(t, v, fmt.Sprintf("192.0.%d.%d", i/250, i%250), strings.Repeat("x", 1+i), "?")
	}
	inner.wantCalls(t, 1000)
	if v.Rows() != 50 {
		t.Errorf("%d rows, want 50", v.Rows())
	}
}

// TestThrottleNeedsASource: without one, no check is made.
func TestThrottleNeedsASource(t *testing.T) {
	inner := new(counted)
	v := mustThrottle(t, inner, nil)
	_, err := v.Verify(t.Context(), "c", "s")
	var limit *auth.LimitError
	if err == nil || errors.Is(err, webhookcfg.ErrInvalidCredentials) || errors.As(err, &limit) || !strings.Contains(err.Error(), "WithSource") {
		t.Errorf("got %v", err)
	}
	inner.wantCalls(t, 0)
}

// TestThrottleModel compares one bucket with a model that counts its tokens, by random
// steps.
func TestThrottleModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(1, 2))
		for range 200 {
			rate := auth.Rate{Burst: 1 + random.IntN(5), Every: time.Duration(1 + random.IntN(20))}
			inner := new(counted)
			v := mustThrottle(t, inner, &auth.ThrottleOptions{PerClientAndSource: rate})
			tokens := rate.Burst
			full := time.Now() // when the model last gained a token or was full
			for step := range 50 {
				time.Sleep(time.Duration(random.IntN(15)))
				for tokens < rate.Burst && time.Since(full) >= rate.Every {
					tokens++
					full = full.Add(rate.Every)
				}
				if tokens == rate.Burst {
					full = time.Now()
				}
				secret := []string{"s", "wrong", "wrong", "wrong"}[random.IntN(4)]
				want := time.Duration(0)
				if tokens == 0 {
					want = rate.Every - time.Since(full)
				} else if secret != "s" {
					tokens--
				}
				if got := waitOf(t, v, "192.0.2.1", "c", secret); got != want {
					t.Fatalf("%+v, step %d, %s: wait %v, want %v", rate, step, secret, got, want)
				}
			}
		}
	})
}

func TestThrottleOptions(t *testing.T) {
	if _, err := auth.Throttle(nil, nil); err == nil {
		t.Error("accepted a nil verifier")
	}
	for _, options := range []auth.ThrottleOptions{
		{Size: -1},
		{PerClient: auth.Rate{Burst: 1}},
		{PerSource: auth.Rate{Every: time.Second}},
		{PerClientAndSource: auth.Rate{Burst: -1, Every: time.Second}},
		{PerClient: auth.Rate{Burst: math.MaxInt32, Every: math.MaxInt64}},
	} {
		if _, err := auth.Throttle(new(counted), &options); err == nil {
			t.Errorf("accepted %+v", options)
		}
	}
}
