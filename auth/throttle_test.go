package auth_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/auth"
	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/webhookcfg"
)

func mustThrottle(t testing.TB, v webhookcfg.CredentialVerifier, options *auth.ThrottleOptions) *auth.Throttle {
	t.Helper()
	throttled, err := auth.NewThrottle(v, options)
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

// TestThrottleSparesTheOwner: a flood on one id from one address is stopped, and the owner
// can sign in from anywhere else.
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

// TestThrottleNetworks: you can't get more guesses by varying an address that you hold.
func TestThrottleNetworks(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		same bool
	}{
		{"2001:db8:0:1::1", "2001:db8:0:1:ffff:ffff:ffff:ffff", true},
		{"2001:db8:0:1::1", "2001:db8:0:2::1", true},
		{"2001:db8:0:1::1", "2001:db8:1:1::1", false},
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

// TestThrottleSite: an IPv6 site can't get more guesses through its many /64 networks. Nor
// can it make the throttle forget others.
func TestThrottleSite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := new(counted)
		v := mustThrottle(t, inner, &auth.ThrottleOptions{Size: 2048})
		wantWait(t, v, "2001:db8:1:abcd::1", "c", "s", 0)
		for i := range 2000 { // more than the bucket of an id holds
			_ = waitOf(t, v, fmt.Sprintf("192.0.%d.%d", i/250, i%250), "flooded", "wrong")
		}
		inner.wantCalls(t, 1+1000)
		for i := range 3000 {
			_ = waitOf(t, v, fmt.Sprintf("2001:db8:1:%x::1", i), fmt.Sprint(i), "wrong")
		}
		inner.wantCalls(t, 1+1000+2000)
		wantWait(t, v, "2001:db8:1:ffff::1", "new", "wrong", 100*time.Millisecond)
		wantWait(t, v, "2001:db8:2::1", "flooded", "wrong", time.Second)
		wantWait(t, v, "2001:db8:2::1", "new", "wrong", 0)
		wantWait(t, v, "2001:db8:1:abcd::1", "c", "wrong", 0) // has signed in from there
	})
}

// TestThrottleNeighbours: strangers in the same IPv6 site don't limit a source that the id
// has signed in from.
func TestThrottleNeighbours(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := mustThrottle(t, new(counted), &tight)
		wantWait(t, v, "2001:db8:1:1::1", "c", "s", 0)
		for range 3 {
			wantWait(t, v, "2001:db8:1:2::1", "c", "wrong", 0)
		}
		wantWait(t, v, "2001:db8:1:3::1", "c", "s", time.Minute)
		wantWait(t, v, "2001:db8:1:1::1", "c", "s", 0)
	})
}

// TestThrottleExtremes: ten times an extreme rate is still a rate.
func TestThrottleExtremes(t *testing.T) {
	for _, tt := range []struct {
		rate auth.Rate
		pass int // of 20 networks of one site
	}{
		{auth.Rate{Burst: 1, Every: 1}, 10},
		{auth.Rate{Burst: math.MaxInt, Every: 1}, 20},
		{auth.Rate{Burst: 1, Every: math.MaxInt64}, 10},
	} {
		synctest.Test(t, func(t *testing.T) {
			inner := new(counted)
			v := mustThrottle(t, inner, &auth.ThrottleOptions{PerSource: tt.rate})
			for i := range 20 {
				_ = waitOf(t, v, fmt.Sprintf("2001:db8:1:%x::1", i), fmt.Sprint(i), "wrong")
			}
			inner.wantCalls(t, int64(tt.pass))
		})
	}
}

// TestThrottleInThrottle: a throttle around another one doesn't lift its limits.
func TestThrottleInThrottle(t *testing.T) {
	inner := new(counted)
	v := mustThrottle(t, mustCache(t, mustThrottle(t, inner, &tight), nil), nil)
	wantWait(t, v, "192.0.2.1", "c", "s", 0)
	for range 10 {
		_ = waitOf(t, v, "192.0.2.1", "c", "wrong")
	}
	inner.wantCalls(t, 1+3)
}

// TestThrottleDefaults: the default rates are as documented.
func TestThrottleDefaults(t *testing.T) {
	one, many := ipv4(1).String, func(i int) string { return fmt.Sprintf("192.0.%d.%d", i/250, i%250) }
	for _, tt := range []struct {
		name   string
		source func(i int) string
		id     func(i int) string
		burst  int
		every  time.Duration
	}{
		{"id and source", func(int) string { return one() }, func(int) string { return "c" }, 20, 6 * time.Second},
		{"source", func(int) string { return one() }, strconv.Itoa, 200, time.Second},
		{"id", many, func(int) string { return "c" }, 1000, time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := mustThrottle(t, new(counted), nil)
				for i := range tt.burst {
					wantWait(t, v, tt.source(i), tt.id(i), "wrong", 0)
				}
				for range 2 {
					wantWait(t, v, tt.source(tt.burst), tt.id(tt.burst), "wrong", tt.every)
					time.Sleep(tt.every)
					wantWait(t, v, tt.source(tt.burst), tt.id(tt.burst), "wrong", 0)
				}
			})
		})
	}
}

// TestThrottleGivesBack: a token is lost only if a check failed, or may have failed.
func TestThrottleGivesBack(t *testing.T) {
	const attempts = 101 // more than any bucket holds
	ended := func(ctx context.Context, err error) (context.Context, error) {
		ctx, cancel := context.WithCancel(ctx)
		cancel()
		return ctx, err
	}
	expired := func(ctx context.Context, err error) (context.Context, error) {
		ctx, cancel := context.WithDeadline(ctx, time.Now())
		defer cancel()
		<-ctx.Done()
		return ctx, err
	}
	alive := func(ctx context.Context, err error) (context.Context, error) { return ctx, err }
	for _, tt := range []struct {
		name string
		end  func(context.Context, error) (context.Context, error) // of the check
		err  error
		cost bool
	}{
		{"success", alive, nil, false},
		{"refusal", alive, webhookcfg.ErrInvalidCredentials, true},
		{"outage", alive, errors.New("down"), false},
		{"time limit of the verifier", alive, context.DeadlineExceeded, false},
		{"verifier that canceled its own work", alive, context.Canceled, false},
		{"queue full", alive, auth.ErrBusy, false},
		{"time limit", expired, context.DeadlineExceeded, false},
		{"outage up to the time limit", expired, errors.New("down"), false},
		{"refusal at the time limit", expired, webhookcfg.ErrInvalidCredentials, true},
		{"success at the time limit", expired, nil, false},
		{"disconnect", ended, context.Canceled, true},
		{"disconnect, another error", ended, errors.New("down"), true},
		{"success before the disconnect", ended, nil, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				inner := new(counted)
				v := mustThrottle(t, inner, &tight)
				for range attempts {
					ctx, err := tt.end(from(t, "192.0.2.1"), tt.err)
					inner.verdict = func() (webhookcfg.Client, error) { return webhookcfg.Client{ID: "c"}, err }
					_, _ = v.Verify(ctx, "c", "s")
				}
				want := int64(attempts)
				if tt.cost {
					want = 3
				}
				inner.wantCalls(t, want)
			})
		})
	}
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

	v = mustThrottle(t, inner, nil)
	for i := range 65_536 + 1 {
		addr := netip.AddrFrom4([4]byte{192, byte(i >> 16), byte(i >> 8), byte(i)})
		_, _ = v.Verify(auth.ContextWithSource(t.Context(), addr), "c", "s")
	}
	if v.Rows() != 65_536 {
		t.Errorf("%d rows by default, want 65536", v.Rows())
	}
}

// TestThrottleNamesTheLimit: when a client with the right secret is limited, the error and the
// handler's log say which limit is used up.
func TestThrottleNamesTheLimit(t *testing.T) {
	const from4, from6 = "192.0.2.1", "2001:db8:0:1::1"
	tests := []struct {
		source   string
		signedIn bool // the id from the source
		times    int
		failure  func(i int) (source, id string)
		want     string
	}{
		{from4, false, 3, func(int) (string, string) { return from4, "c" }, "with this id from this source"},
		{from6, true, 3, func(int) (string, string) { return from6, "c" }, "with this id from this source"},
		{from6, false, 3, func(i int) (string, string) { return fmt.Sprintf("2001:db8:0:%x::1", i+2), "c" }, "with this id from the source's /48 network"},
		{from4, true, 10, func(i int) (string, string) { return from4, fmt.Sprint("other", i) }, "from this source"},
		{from6, false, 10, func(i int) (string, string) { return from6, fmt.Sprint("other", i) }, "from this source"},
		{from6, false, 100, func(i int) (string, string) { return fmt.Sprintf("2001:db8:0:%x::1", i+2), fmt.Sprint("other", i) }, "from the source's /48 network"},
		{from4, false, 30, func(i int) (string, string) { return fmt.Sprint("198.51.100.", i), "c" }, "with this id"},
	}
	for _, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			v := mustThrottle(t, new(counted), &tight)
			if tt.signedIn {
				wantWait(t, v, tt.source, "c", "s", 0)
			}
			for i := range tt.times {
				source, id := tt.failure(i)
				wantWait(t, v, source, id, "wrong", 0)
			}
			_, err := v.Verify(from(t, tt.source), "c", "s")
			var limit *auth.LimitError
			if want := "auth: too many failed sign-ins " + tt.want + "; retry after "; !errors.As(err, &limit) || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("got %v, want %s", err, want)
			}
			var log strings.Builder
			h := hooktest.NewHandler(t, nowhere{}, v, &webhookcfg.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
			_, err = h.SignIn(from(t, tt.source), "c", "s")
			if want := "auth: too many failed sign-ins " + tt.want + " (*auth.LimitError)"; err == nil || !strings.Contains(log.String(), want) {
				t.Errorf("got %v, logged %s, want %s", err, &log, want)
			}
		})
	}
}

// TestThrottleNeedsASource: without one, no check is made.
func TestThrottleNeedsASource(t *testing.T) {
	inner := new(counted)
	v := mustThrottle(t, inner, nil)
	_, err := v.Verify(t.Context(), "c", "s")
	var limit *auth.LimitError
	if err == nil || errors.Is(err, webhookcfg.ErrInvalidCredentials) || errors.As(err, &limit) || !strings.Contains(err.Error(), "WithSource") {
		t.Errorf("without a source in the context: got %v, want an error that names WithSource", err)
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
	if _, err := auth.NewThrottle(nil, nil); err == nil {
		t.Error("accepted a nil verifier")
	}
	for _, options := range []auth.ThrottleOptions{
		{Size: -1},
		{PerClient: auth.Rate{Burst: 1}},
		{PerSource: auth.Rate{Every: time.Second}},
		{PerClientAndSource: auth.Rate{Burst: -1, Every: time.Second}},
		{PerClient: auth.Rate{Burst: math.MaxInt32, Every: math.MaxInt64}},
	} {
		if _, err := auth.NewThrottle(new(counted), &options); err == nil {
			t.Errorf("accepted %+v", options)
		}
	}
}

// TestThrottleNamesTheLongestWait: if several limits are used up, the error has the one with the
// longest wait, whichever comes first.
func TestThrottleNamesTheLongestWait(t *testing.T) {
	for _, tt := range []struct {
		ofPair, ofSource time.Duration
		want             string
	}{
		{time.Minute, time.Second, "with this id from this source"},
		{time.Second, time.Minute, "from this source"},
	} {
		synctest.Test(t, func(t *testing.T) {
			v := mustThrottle(t, new(counted), &auth.ThrottleOptions{
				PerClientAndSource: auth.Rate{Burst: 3, Every: tt.ofPair},
				PerSource:          auth.Rate{Burst: 3, Every: tt.ofSource},
			})
			for range 3 {
				wantWait(t, v, "192.0.2.1", "c", "wrong", 0)
			}
			_, err := v.Verify(from(t, "192.0.2.1"), "c", "s")
			if want := "auth: too many failed sign-ins " + tt.want + "; retry after 1m0s"; err == nil || err.Error() != want {
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
}
