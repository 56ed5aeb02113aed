package auth_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"example.com/go-webhookcfg/auth"
	"example.com/go-webhookcfg/webhookcfg"
)

// ownNames signs in the ids whose secret is their own name, and counts its calls.
func ownNames(calls *int) auth.Func {
	return func(_ context.Context, id, secret string) (webhookcfg.Client, error) {
		*calls++
		if id != secret {
			return webhookcfg.Client{}, webhookcfg.ErrInvalidCredentials
		}
		return webhookcfg.Client{ID: id}, nil
	}
}

// TestKnownSourcesAreShared: if a client signs in from every network of its site, it only
// pushes out its own sources.
func TestKnownSourcesAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		options := tight
		options.Size = 200
		calls := 0
		v := mustThrottle(t, ownNames(&calls), &options)
		const home = "192.0.2.1"
		wantWait(t, v, home, "victim", "victim", 0)
		for i := range 2 * options.Size {
			wantWait(t, v, fmt.Sprintf("2001:db8:1:%x::1", i), "evil", "evil", 0)
		}
		for i := range 20 { // which exhausts the bucket of the id
			for range 3 {
				_ = waitOf(t, v, fmt.Sprintf("198.51.100.%d", i), "victim", "wrong")
			}
		}
		wantWait(t, v, "203.0.113.1", "victim", "victim", tight.PerClient.Every)
		wantWait(t, v, home, "victim", "victim", 0)
	})
}

// TestFailuresAreShared: if a client fails from every network of its site after it has signed
// in there, it only pushes out its own failures.
func TestFailuresAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		options := tight
		options.Size = 50
		calls := 0
		v := mustThrottle(t, ownNames(&calls), &options)
		const guesser = "192.0.2.1"
		for i := range 10 { // of each table that a guesser fills
			wantWait(t, v, guesser, []string{"a", "b", "c", "d"}[i/3], "wrong", 0)
		}
		for i := range 10 * options.Size {
			source := fmt.Sprintf("2001:db8:1:%x::1", i)
			wantWait(t, v, source, "evil", "evil", 0)
			wantWait(t, v, source, "evil", "wrong", 0)
		}
		if wait := waitOf(t, v, guesser, "e", "wrong"); wait == 0 {
			t.Error("the failures of the source were forgotten")
		}
		if wait := waitOf(t, v, guesser, "a", "a"); wait != tight.PerClientAndSource.Every {
			t.Errorf("the failures of the id from the source were forgotten: wait %v", wait)
		}
	})
}

// TestCacheIsShared: if a client signs in from every network of its site, it only pushes out
// its own credentials.
func TestCacheIsShared(t *testing.T) {
	calls := 0
	v := mustCache(t, ownNames(&calls), &auth.CacheOptions{Size: 50})
	verify := func(source, id string) {
		t.Helper()
		if _, err := v.Verify(from(t, source), id, id); err != nil {
			t.Fatal(err)
		}
	}
	verify("192.0.2.1", "victim")
	for i := range 500 {
		verify(fmt.Sprintf("2001:db8:1:%x::1", i), "evil")
	}
	before := calls
	verify("192.0.2.1", "victim")
	if calls != before {
		t.Error("the victim's credential was forgotten")
	}
	if v.Remembered() != 50 {
		t.Errorf("%d credentials remembered, want 50", v.Remembered())
	}
}
