package auth_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/auth"
)

func sha256Line(id, secret string) string { return mustLine(auth.SHA256Line(id, secret)) }

// reports is what a File told its logger and its hook.
type reports struct {
	logged  strings.Builder
	reloads []error
}

func (r *reports) options(poll time.Duration) *auth.FileOptions {
	return &auth.FileOptions{
		Poll:     poll,
		Logger:   slog.New(slog.NewTextHandler(&r.logged, nil)),
		OnReload: func(err error) { r.reloads = append(r.reloads, err) },
	}
}

func (r *reports) want(t *testing.T, reloads, failures int) {
	t.Helper()
	failed := 0
	for _, err := range r.reloads {
		if err != nil {
			failed++
		}
	}
	if len(r.reloads) != reloads || failed != failures {
		t.Errorf("reports %v, want %d of which %d failed", r.reloads, reloads, failures)
	}
	if logged := strings.Count(r.logged.String(), "\n"); logged != reloads {
		t.Errorf("%d log records, want %d:\n%s", logged, reloads, &r.logged)
	}
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
		t.Error("the revision is the one before")
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

func TestReloadKeepsTheOld(t *testing.T) {
	good := sha256Line("c", "old")
	for name, spoil := range map[string]func(path string) error{
		"malformed": func(path string) error { return os.WriteFile(path, []byte(good+"\nhush\n"), 0o600) },
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
					t.Errorf("got %v", err)
				}
			}
			r.want(t, 1, 1)
			mustSignIn(t, f, "c", "old", "c")
			if f.Revision() != before {
				t.Error("another revision, though nothing else is in use")
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
		if strings.Contains(r.logged.String(), "hush") {
			t.Errorf("the log quotes the file:\n%s", &r.logged)
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

// TestCloseWaits: what the poll has begun is over when Close returns.
func TestCloseWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := writeFile(t, sha256Line("c", "old"))
		f := mustOpen(t, path, &auth.FileOptions{
			Poll:     poll,
			OnReload: func(error) { time.Sleep(time.Hour) },
		})
		rewrite(t, path, sha256Line("c", "new"))
		tick()
		start := time.Now()
		if err := f.Close(); err != nil || time.Since(start) != time.Hour {
			t.Errorf("got %v after %v", err, time.Since(start))
		}
	})
}

// TestPollLooksFirst: a file that looks as before is not read again, unless it was
// changed so shortly before it was read that a later change could look the same.
func TestPollLooksFirst(t *testing.T) {
	for _, tt := range []struct {
		name string
		age  time.Duration // of the file when it is read
		sees bool
	}{
		{"old file", time.Minute, false},
		{"fresh file", time.Second, true},
		{"file from the future", -time.Hour, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				path := writeFile(t, sha256Line("c", "old"))
				changed := time.Now().Add(-tt.age)
				setTime(t, path, changed)
				f := mustOpen(t, path, &auth.FileOptions{Poll: poll})

				// In place, of the same size, and dated back: nothing shows from outside.
				if err := os.WriteFile(path, []byte(sha256Line("c", "new")+"\n"), 0o600); err != nil {
					t.Fatal(err)
				}
				setTime(t, path, changed)
				tick()
				_, err := f.Verify(t.Context(), "c", "new")
				if (err == nil) != tt.sees {
					t.Errorf("saw the change: %v, want %v", err == nil, tt.sees)
				}

				if err := f.Reload(t.Context()); err != nil {
					t.Fatal(err)
				}
				mustSignIn(t, f, "c", "new", "c")
				_ = f.Close()
			})
		})
	}
}

func setTime(t *testing.T, path string, to time.Time) {
	t.Helper()
	if err := os.Chtimes(path, to, to); err != nil {
		t.Fatal(err)
	}
}

// TestReloadUnderLoad rotates a secret over and over, as an operator does: add the
// new one, let the client change over, drop the old one. No request fails, and what
// was dropped is refused from the reload on.
func TestReloadUnderLoad(t *testing.T) {
	const rotations, clients = 50, 4
	secrets := make([]string, rotations+1)
	for i := range secrets {
		secrets[i] = auth.NewSecret()
	}
	path := writeFile(t, sha256Line("c", secrets[0]))
	f := mustOpen(t, path, nil)
	v, err := auth.Cache(f, nil)
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
		inUse.Lock() // nobody is half way through with the old one
		use(next)
		inUse.Unlock()
		load(sha256Line("c", next))
		mustRefuse(t, v, "c", old)
		mustRefuse(t, f, "c", old)
	}
	stop()
	group.Wait()
}
