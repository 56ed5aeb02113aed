package auth_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
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
		auth.Credential{ID: "one", Secrets: secrets(long("s1"))},
		auth.Credential{ID: "three", Secrets: secrets(long("s1"), long("s2"), long("s3"))},
		auth.Credential{ID: "gone", Secrets: secrets(long("s1"), long("s2"), long("s3"), long("s4")), Disabled: true},
	)
	if err != nil {
		t.Fatal(err)
	}
	want := [4]int64{1, 3, 0, 0}
	for _, presented := range [][2]string{
		{"unknown", long("s1")},
		{"one", long("wrong")},
		{"three", long("wrong")},
		{"gone", long("s1")},
		{"gone", long("wrong")},
		{"", ""},
		{"unknown", strings.Repeat("x", 3000)},
		// The position of the secret makes no difference either.
		{"one", long("s1")},
		{"three", long("s1")},
		{"three", long("s2")},
		{"three", long("s3")},
	} {
		if got := costOf(t, w, v, presented[0], presented[1]); got != want {
			t.Errorf("%s costs %v, want %v", presented[0], got, want)
		}
	}
}

// TestMixedKindsCostTheSame: a check that fails costs as much as the costliest client of each
// kind, even if their rounds differ.
func TestMixedKindsCostTheSame(t *testing.T) {
	const few, many = 600_000, 1_000_000
	w := new(auth.Work)
	v, err := auth.OpenCountedFile(w, writeFile(t,
		sha256Line("plain", "p1"),
		sha256Line("plain", "p2"),
		auth.CheapPBKDF2Line("few", "f", few),
		auth.CheapPBKDF2Line("both", "b1", few),
		auth.CheapPBKDF2Line("both", "b2", many),
		sha256Line("both", "b3"),
		auth.CheapPBKDF2Line("gone", "g", 9_000_000)+" disabled",
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
		// If a hash has fewer rounds, a second derivation makes up for that.
		{"few", "wrong", slow(3)},
		{"few", "f", slow(3)},
		// A client with a generated secret doesn't wait for a slow hash.
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

// TestNamesSecret: if a client has several secrets, you get the name of the secret that
// signed it in, of any kind and at any position.
func TestNamesSecret(t *testing.T) {
	f, err := auth.OpenCountedFile(new(auth.Work), writeFile(t,
		sha256Line("c", "1")+" name=one",
		auth.CheapPBKDF2Line("c", "2", 600_000)+" name=two",
		sha256Line("c", "3"),
		auth.CheapPBKDF2Line("c", "4", 700_000)+" name=four",
		sha256Line("c", "5")+" name=five",
	), nil)
	if err != nil {
		t.Fatal(err)
	}
	v := mustCache(t, f, nil)
	for range 2 { // the second time by the cache
		for secret, want := range map[string]string{"1": "one", "2": "two", "3": "", "4": "four", "5": "five"} {
			if client, err := v.Verify(t.Context(), "c", secret); err != nil || client.ID != "c" || client.SecretName != want {
				t.Errorf("secret %s: got %+v, %v, want the name %q", secret, client, err, want)
			}
		}
	}
}

// TestDummiesSignInNoClient: not even if the presented secret has the dummies' hashes.
func TestDummiesSignInNoClient(t *testing.T) {
	w := &auth.Work{AllEqual: true}
	v, err := auth.OpenCountedFile(w, writeFile(t,
		sha256Line("plain", "1"),
		sha256Line("ended", "2")+" until=1999-01-01T00:00:00Z",
		auth.CheapPBKDF2Line("slow", "3", 600_000),
	), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"unknown", "", "ended"} {
		mustRefuse(t, v, id, "0")
	}
	mustSignIn(t, v, "plain", "0", "plain")
	mustSignIn(t, v, "slow", "0", "slow")
}

// TestUntil: a secret is refused from the instant at which it ends, by a cache too. The
// refusal costs as much as any other.
func TestUntil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := func(d time.Duration) string { return " until=" + time.Now().Add(d).Format(time.RFC3339Nano) }
		w := new(auth.Work)
		f, err := auth.OpenCountedFile(w, writeFile(t,
			sha256Line("plain", "ended")+in(0),
			sha256Line("plain", "hour")+in(time.Hour),
			sha256Line("plain", "always"),
			auth.CheapPBKDF2Line("slow", "two", 800_000)+in(2*time.Hour),
			// This is one secret, hashed four times. The line with the latest end is in the
			// middle.
			auth.CheapPBKDF2Line("same", "s", 800_000)+in(time.Minute),
			auth.CheapPBKDF2Line("same", "s", 700_000)+in(3*time.Hour),
			auth.CheapPBKDF2Line("same", "s", 600_000)+in(2*time.Minute),
			sha256Line("same", "s")+in(time.Second),
		), nil)
		if err != nil {
			t.Fatal(err)
		}
		outer := mustCache(t, f, &auth.CacheOptions{TTL: 1000 * time.Hour})
		wantCost := costOf(t, w, f, "unknown", "s")
		signsIn := func(id, secret string, want bool) {
			t.Helper()
			for _, v := range []webhookcfg.CredentialVerifier{f, outer} {
				if !want {
					mustRefuse(t, v, id, secret)
				} else {
					mustSignIn(t, v, id, secret, id)
				}
			}
			if got := costOf(t, w, f, id, secret); !want && got != wantCost {
				t.Errorf("the refusal of %s and %s costs %v, want %v", id, secret, got, wantCost)
			}
		}
		for _, moment := range []struct {
			after             time.Duration
			hour, two, thrice bool
		}{
			{0, true, true, true},
			{time.Hour - 1, true, true, true},
			{1, false, true, true},
			{time.Hour - 1, false, true, true},
			{1, false, false, true},
			{time.Hour - 1, false, false, true},
			{1, false, false, false},
			{1000 * time.Hour, false, false, false},
		} {
			time.Sleep(moment.after)
			signsIn("plain", "ended", false)
			signsIn("plain", "always", true)
			signsIn("plain", "hour", moment.hour)
			signsIn("slow", "two", moment.two)
			signsIn("same", "s", moment.thrice)
		}
	})
}

// TestUntilDuringCheck: a secret that ends while it's hashed is refused.
func TestUntilDuringCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		until := time.Now().Add(500 * time.Millisecond).Format(time.RFC3339Nano)
		f, _, _ := openSlow(t, 1, auth.CheapPBKDF2Line("human", "h", 600_000)+" until="+until)
		mustRefuse(t, f, "human", "h")
	})
}

// TestRevisionOfEnds: the revision changes when a secret ends, and never comes back.
func TestRevisionOfEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := writeFile(t,
			sha256Line("a", "1")+" until="+time.Now().Add(time.Minute).Format(time.RFC3339),
			sha256Line("a", "2")+" until="+time.Now().Add(2*time.Minute).Format(time.RFC3339),
		)
		f := mustOpen(t, path, nil)
		seen := []uint64{f.Revision()}
		next := func() {
			t.Helper()
			if now := f.Revision(); slices.Contains(seen, now) {
				t.Errorf("the revision %d was there before: %v", now, seen)
			} else {
				seen = append(seen, now)
			}
		}
		time.Sleep(time.Minute)
		next()
		rewrite(t, path, sha256Line("a", "2")+" until="+time.Now().Add(time.Minute).Format(time.RFC3339))
		if err := f.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
		next()
		time.Sleep(time.Minute)
		next()
	})
}

func mustLine(line string, err error) string {
	if err != nil {
		panic(err)
	}
	return line
}

// writeFile writes a credential file that only its owner can read, with the lines begin
// and end around the others.
func writeFile(t testing.TB, lines ...string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "credentials")
	rewrite(t, path, lines...)
	return path
}

// rewrite replaces a credential file by renaming a new one.
func rewrite(t testing.TB, path string, lines ...string) {
	t.Helper()
	next, text := path+".next", strings.Join(slices.Concat([]string{"begin"}, lines, []string{"end", ""}), "\n")
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, path); err != nil {
		t.Fatal(err)
	}
}

// openSlow opens a file whose derivations take a second each. Peak is how many ran at the
// same time.
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

// TestSlowHashesByDefault: they use half of the processors, and at least one.
func TestSlowHashesByDefault(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for procs, want := range map[int]int64{1: 1, 2: 1, 3: 1, 8: 4} {
		runtime.GOMAXPROCS(procs)
		synctest.Test(t, func(t *testing.T) {
			f, _, peak := openSlow(t, 0, auth.CheapPBKDF2Line("human", "h", 600_000))
			var group sync.WaitGroup
			for range 2 * want {
				group.Go(func() { mustSignIn(t, f, "human", "h", "human") })
			}
			group.Wait()
			if got := peak.Load(); got != want {
				t.Errorf("%d processors: %d concurrent slow hashes, want %d", procs, got, want)
			}
		})
	}
}

// TestSlowHashesEndWithTheContext, while they wait and between two hashes of one check.
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
