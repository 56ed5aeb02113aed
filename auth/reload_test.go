package auth_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/auth"
)

// reports collects the log of a File.
type reports struct {
	mu      sync.Mutex
	records strings.Builder
}

func (r *reports) Write(record []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.records.Write(record)
}

func (r *reports) options(poll time.Duration) *auth.FileOptions {
	return &auth.FileOptions{Poll: poll, Logger: slog.New(slog.NewTextHandler(r, nil))}
}

func (r *reports) logged() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.records.String()
}

func (r *reports) want(t *testing.T, reloads, failures int) {
	t.Helper()
	logged := r.logged()
	if all, failed := strings.Count(logged, "\n"), strings.Count(logged, "level=ERROR"); all != reloads || failed != failures {
		t.Errorf("%d records, of which %d are errors; want %d and %d:\n%s", all, failed, reloads, failures, logged)
	}
}

// slowLogger takes an hour for a record.
func slowLogger() *slog.Logger { return slog.New(slog.NewTextHandler(hour{}, nil)) }

type hour struct{}

func (hour) Write(record []byte) (int, error) {
	time.Sleep(time.Hour)
	return len(record), nil
}

const poll = 10 * time.Second

// tick lets a File poll once.
func tick() {
	time.Sleep(poll)
	synctest.Wait()
}

func TestReloadOnDemand(t *testing.T) {
	var r reports
	path := writeFile(t, sha256Line("c", "old"))
	f := mustOpen(t, path, r.options(0))
	rewrite(t, path, sha256Line("c", "new"))
	mustSignIn(t, f, "c", "old", "c")

	before := f.Revision()
	if err := f.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	mustSignIn(t, f, "c", "new", "c")
	mustRefuse(t, f, "c", "old")
	if f.Revision() == before {
		t.Error("the revision did not change")
	}
	r.want(t, 1, 0)

	before = f.Revision()
	if err := f.Reload(t.Context()); err != nil || f.Revision() != before {
		t.Errorf("got %v, revision %d after %d, though nothing changed", err, f.Revision(), before)
	}
	r.want(t, 1, 0)

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.Reload(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v for an ended context", err)
	}
}

func TestReloadFailureKeepsTheOld(t *testing.T) {
	good := sha256Line("c", "old")
	for name, spoil := range map[string]func(path string) error{
		"malformed": func(path string) error { return os.WriteFile(path, []byte("begin\n"+good+"\nhush\nend\n"), 0o600) },
		"cut":       func(path string) error { return os.WriteFile(path, []byte("begin\n"+good+"\n"), 0o600) },
		"empty":     func(path string) error { return os.Truncate(path, 0) },
		"missing":   os.Remove,
		"directory": func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) },
	} {
		t.Run(name, func(t *testing.T) {
			var r reports
			path := writeFile(t, good)
			f := mustOpen(t, path, r.options(0))
			before := f.Revision()
			if err := spoil(path); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				if err := f.Reload(t.Context()); err == nil || strings.Contains(err.Error(), "hush") {
					t.Errorf("got %v, want an error that quotes nothing of the file", err)
				}
			}
			r.want(t, 1, 1)
			mustSignIn(t, f, "c", "old", "c")
			if f.Revision() != before {
				t.Error("the revision changed without the contents")
			}

			if err := os.RemoveAll(path); err != nil {
				t.Fatal(err)
			}
			rewrite(t, path, good)
			if err := f.Reload(t.Context()); err != nil {
				t.Error(err)
			}
			r.want(t, 2, 1)
		})
	}
}

func TestPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r reports
		path := writeFile(t, sha256Line("c", "old"))
		f := mustOpen(t, path, r.options(poll))
		tick()
		r.want(t, 0, 0)

		rewrite(t, path, sha256Line("c", "new"))
		mustSignIn(t, f, "c", "old", "c")
		tick()
		mustSignIn(t, f, "c", "new", "c")
		mustRefuse(t, f, "c", "old")
		r.want(t, 1, 0)

		rewrite(t, path, "hush")
		tick()
		tick()
		tick()
		r.want(t, 2, 1)
		rewrite(t, path, "# another fault", "hush")
		tick()
		r.want(t, 3, 2)
		mustSignIn(t, f, "c", "new", "c")

		rewrite(t, path, sha256Line("c", "new"))
		tick()
		tick()
		r.want(t, 4, 2)
		if strings.Contains(r.logged(), "hush") {
			t.Errorf("the log quotes the file:\n%s", r.logged())
		}

		if err := errors.Join(f.Close(), f.Close()); err != nil {
			t.Error(err)
		}
		rewrite(t, path, sha256Line("c", "newest"))
		tick()
		mustSignIn(t, f, "c", "new", "c")
		r.want(t, 4, 2)
	})
}

// TestCloseWaits: Close waits for the poll that is under way.
func TestCloseWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := writeFile(t, sha256Line("c", "old"))
		f := mustOpen(t, path, &auth.FileOptions{Poll: poll, Logger: slowLogger()})
		rewrite(t, path, sha256Line("c", "new"))
		tick()
		start := time.Now()
		if err := f.Close(); err != nil || time.Since(start) != time.Hour {
			t.Errorf("Close returned %v after %v, want nil once the poll is over", err, time.Since(start))
		}
	})
}

// TestReloadUnderLoad rotates a secret repeatedly, as an operator does: add the new one,
// switch the client, remove the old one. No request fails, and the removed secret is
// refused after the reload.
func TestReloadUnderLoad(t *testing.T) {
	const rotations, clients = 50, 4
	secrets := make([]string, rotations+1)
	for i := range secrets {
		secrets[i] = auth.GenerateSecret().Reveal()
	}
	path := writeFile(t, sha256Line("c", secrets[0]))
	f := mustOpen(t, path, nil)
	v, err := auth.NewCache(f, nil)
	if err != nil {
		t.Fatal(err)
	}

	var current sync.Map // client → secret
	use := func(secret string) {
		for i := range clients {
			current.Store(i, secret)
		}
	}
	use(secrets[0])
	ctx, stop := context.WithCancel(t.Context())
	var inUse sync.RWMutex // held to read while a client uses its secret
	var group sync.WaitGroup
	for i := range clients {
		group.Go(func() {
			for ctx.Err() == nil {
				inUse.RLock()
				secret, _ := current.Load(i)
				if _, err := v.Verify(t.Context(), "c", secret.(string)); err != nil {
					t.Errorf("a good secret failed: %v", err)
				}
				inUse.RUnlock()
			}
		})
	}
	load := func(lines ...string) {
		rewrite(t, path, lines...)
		if err := f.Reload(t.Context()); err != nil {
			t.Error(err)
		}
	}
	for i, next := range secrets[1:] {
		old := secrets[i]
		load(sha256Line("c", old), sha256Line("c", next))
		inUse.Lock() // no request with the old one is under way
		use(next)
		inUse.Unlock()
		load(sha256Line("c", next))
		mustRefuse(t, v, "c", old)
		mustRefuse(t, f, "c", old)
	}
	stop()
	group.Wait()
}

// TestReloadDuringCheck: once Reload has returned, a removed secret signs in no client, and
// an added one does. That includes a check that had started, or waited for its turn.
func TestReloadDuringCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, w, _ := openSlow(t, 1,
			auth.CheapPBKDF2Line("human", "old", 600_000)+" name=1",
			auth.CheapPBKDF2Line("human", "kept", 600_000)+" name=2",
		)
		results := make(chan string, 4)
		for _, secret := range []string{"old", "kept", "added", "old"} {
			go func() {
				client, err := f.Verify(t.Context(), "human", secret)
				results <- fmt.Sprint(secret, " ", client.SecretName, err == nil)
			}()
			synctest.Wait()
		}
		time.Sleep(500 * time.Millisecond)
		rewrite(t, f.Path(), auth.CheapPBKDF2Line("human", "kept", 600_000)+" name=3",
			auth.CheapPBKDF2Line("human", "added", 600_000)+" name=4")
		if err := f.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
		got := []string{<-results, <-results, <-results, <-results}
		slices.Sort(got)
		if want := []string{"added 4true", "kept 3true", "old false", "old false"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		if got := w.Derivations.Load(); got != 4*2+4*2 {
			t.Errorf("%d derivations, want two for each check, and two more with the new contents", got)
		}
	})
}

// TestReloadHonoursContext: also while another one is under way.
func TestReloadHonoursContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := writeFile(t, sha256Line("c", "old"))
		f := mustOpen(t, path, &auth.FileOptions{Logger: slowLogger()})
		rewrite(t, path, sha256Line("c", "new"))
		go func() { _ = f.Reload(t.Context()) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		if err := f.Reload(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("got %v after %v, want the end of the context after 1s", err, time.Since(start))
		}
		if err := f.Healthy(t.Context()); err != nil {
			t.Errorf("the file is in use, but Healthy returns %v", err)
		}
		if err := f.Reload(t.Context()); err != nil || time.Since(start) != time.Hour {
			t.Errorf("got %v after %v", err, time.Since(start))
		}
	})
}

// TestPollReadsContents: a poll finds a change even if size and time stay the same.
func TestPollReadsContents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := writeFile(t, sha256Line("c", "old"))
		stamp := func() {
			if err := os.Chtimes(path, time.Unix(1, 0), time.Unix(1, 0)); err != nil {
				t.Fatal(err)
			}
		}
		stamp()
		f := mustOpen(t, path, &auth.FileOptions{Poll: poll})
		if err := os.WriteFile(path, []byte("begin\n"+sha256Line("c", "new")+"\nend\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		stamp()
		tick()
		mustRefuse(t, f, "c", "old")
		mustSignIn(t, f, "c", "new", "c")
		_ = f.Close()
	})
}

// TestPollChecksMode: if others can read the file, a poll reports it, even if the contents
// are in use. It reports the file as usable again once the mode is right.
func TestPollChecksMode(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("permissions of Windows are not judged")
	}
	synctest.Test(t, func(t *testing.T) {
		var r reports
		path := writeFile(t, sha256Line("c", "s"))
		f := mustOpen(t, path, r.options(poll))
		for i, mode := range []os.FileMode{0o644, 0o600} {
			if err := os.Chmod(path, mode); err != nil {
				t.Fatal(err)
			}
			tick()
			tick()
			r.want(t, i+1, 1)
			if err := f.Healthy(t.Context()); (err == nil) != (mode == 0o600) {
				t.Errorf("mode %o: got %v", mode, err)
			}
		}
		mustSignIn(t, f, "c", "s", "c")
		_ = f.Close()
	})
}

// TestPollOfShorterFile: a file with fewer clients is in use at once. If a program overwrites
// the file in place, the poll waits until it's complete.
func TestPollOfShorterFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		both := []string{sha256Line("a", "s"), sha256Line("b", "s")}
		var r reports
		path := writeFile(t, both...)
		f := mustOpen(t, path, r.options(poll))
		rewrite(t, path, both[:1]...)
		tick()
		mustRefuse(t, f, "b", "s")

		for i, text := range []string{"", "begin\n", "begin\n" + both[1] + "\n", "begin\n" + both[1] + "\nend"} {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			tick()
			mustSignIn(t, f, "a", "s", "a")
			mustRefuse(t, f, "b", "s")
			if err := f.Healthy(t.Context()); err == nil {
				t.Errorf("state %d is in use: %q", i, text)
			}
		}
		rewrite(t, path, both[1:]...)
		tick()
		mustRefuse(t, f, "a", "s")
		mustSignIn(t, f, "b", "s", "b")
		if err := f.Healthy(t.Context()); err != nil {
			t.Errorf("the complete file is not in use: %v", err)
		}
		_ = f.Close()
	})
}

func TestHealthy(t *testing.T) {
	path := writeFile(t, sha256Line("c", "s"))
	f := mustOpen(t, path, nil)
	if err := f.Healthy(t.Context()); err != nil {
		t.Errorf("the file is in use, but Healthy returns %v", err)
	}
	rewrite(t, path, "hush")
	err := f.Reload(t.Context())
	for range 2 { // reported once, but it remains
		if got := f.Healthy(t.Context()); err == nil || !errors.Is(got, err) || !strings.Contains(got.Error(), path+":2") || !strings.Contains(got.Error(), "corrected") {
			t.Errorf("got %v, want %v", got, err)
		}
	}
	rewrite(t, path, sha256Line("c", "s"))
	if err := f.Reload(t.Context()); err != nil || f.Healthy(t.Context()) != nil {
		t.Errorf("mended: Reload returned %v, and Healthy returns %v", err, f.Healthy(t.Context()))
	}
}
