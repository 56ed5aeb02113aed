package ratelimit_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"example.com/go-webhookcfg/internal/ratelimit"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func TestBurstThenRate(t *testing.T) {
	l := ratelimit.New[string](3, time.Minute, 10)
	now := start
	want := func(key string, want time.Duration) {
		t.Helper()
		if got := l.Wait(key, now); max(got, 0) != want {
			t.Errorf("wait %v at %v, want %v", got, now.Sub(start), want)
		}
	}
	take := func(key string) {
		t.Helper()
		want(key, 0)
		l.Take(key, now)
	}
	for range 3 {
		take("a")
	}
	want("a", time.Minute)
	want("b", 0)
	now = now.Add(time.Minute - 1)
	want("a", 1)
	now = now.Add(1)
	take("a")
	want("a", time.Minute)
	now = now.Add(time.Hour) // more than the bucket holds
	for range 3 {
		take("a")
	}
	want("a", time.Minute)
}

// TestModel compares one bucket, by random steps, with one that counts its tokens.
func TestModel(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		burst, every := 1+random.IntN(5), time.Duration(1+random.IntN(20))
		l := ratelimit.New[string](burst, every, 1)
		tokens, now := burst, start
		full := now // the instant since which no token was gained or missing
		for step := range 100 {
			now = now.Add(time.Duration(random.IntN(15)))
			for tokens < burst && now.Sub(full) >= every {
				tokens++
				full = full.Add(every)
			}
			if tokens == burst {
				full = now
			}
			want := time.Duration(0)
			if tokens == 0 {
				want = every - now.Sub(full)
			}
			if got := max(l.Wait("k", now), 0); got != want {
				t.Fatalf("burst %d, every %d, step %d: wait %v, want %v", burst, every, step, got, want)
			}
			switch {
			case tokens == 0:
			case random.IntN(4) == 0:
				l.Take("k", now)
				l.GiveBack("k", now)
			default:
				l.Take("k", now)
				tokens--
			}
		}
	}
}

// TestGiveBackLater: tokens that come back after the bucket filled up are not added to it.
func TestGiveBackLater(t *testing.T) {
	l := ratelimit.New[string](2, time.Second, 10)
	l.GiveBack("a", start)
	l.Take("a", start)
	l.Take("a", start)
	now := start.Add(1500 * time.Millisecond)
	l.GiveBack("a", now)
	if l.Len() != 0 {
		t.Error("the table keeps a bucket that is full")
	}
	l.GiveBack("a", now)
	l.Take("a", now)
	l.Take("a", now)
	if got := l.Wait("a", now); got != time.Second {
		t.Errorf("wait %v, want 1s", got)
	}
}

func TestIsBounded(t *testing.T) {
	l := ratelimit.New[int](1, time.Hour, 50)
	for key := range 1000 {
		l.Take(0, start.Add(time.Duration(key)*time.Hour)) // stays in use
		l.Take(1+key, start)
	}
	if l.Len() != 50 {
		t.Errorf("%d keys, want 50", l.Len())
	}
	if l.Wait(0, start) <= 0 || l.Wait(1000, start) <= 0 || l.Wait(1, start) > 0 {
		t.Error("forgot a key in use, or the last one, or kept the first")
	}
}

// TestLongest: the longest bucket there can be does not overflow.
func TestLongest(t *testing.T) {
	l := ratelimit.New[string](2, math.MaxInt64/2, 10)
	for range 2 {
		if got := l.Wait("a", start); got > 0 {
			t.Errorf("wait %v", got)
		}
		l.Take("a", start)
	}
	if got := l.Wait("a", start); got != math.MaxInt64/2 {
		t.Errorf("wait %v", got)
	}
}
