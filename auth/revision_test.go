package auth_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/auth"
	"example.com/go-webhookcfg/webhookcfg"
)

// secretTable is a host's database, with a number that changes with each revocation.
type secretTable struct {
	mu       sync.Mutex
	secrets  map[string]string // of each client
	revision uint64
	polls    int
	fault    func(context.Context) error // of reading the revision
}

func (d *secretTable) find(_ context.Context, id string) ([]auth.HashedSecret, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	secret, found := d.secrets[id]
	if !found {
		return nil, nil
	}
	return []auth.HashedSecret{{Hash: reversed(secret), Client: webhookcfg.Client{ID: id}}}, nil
}

func (d *secretTable) readRevision(ctx context.Context) (uint64, error) {
	d.mu.Lock()
	d.polls++
	revision, fault := d.revision, d.fault
	d.mu.Unlock()
	if fault != nil {
		return 1 << 60, fault(ctx) // a number that isn't valid, with the error
	}
	return revision, nil
}

func (d *secretTable) change(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f()
}

// process returns the lookup of one of the host's processes, and the verifier around it.
func (d *secretTable) process(t *testing.T, options auth.LookupOptions) (*auth.Lookup, *auth.Cache) {
	t.Helper()
	h := new(hostHash)
	options.Find, options.Hash, options.Compare = d.find, h.hash, h.compare
	lookup, err := auth.NewLookup(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lookup.Close() })
	return lookup, mustCache(t, mustThrottle(t, lookup, nil), nil)
}

// TestRevokedInEveryProcess: the caches of all processes that poll the revision refuse a
// revoked secret within the interval. One that doesn't poll accepts it for the TTL.
func TestRevokedInEveryProcess(t *testing.T) {
	for _, poll := range []time.Duration{0, 10 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			database := &secretTable{secrets: map[string]string{"a": "secret-of-a", "b": "secret-of-b"}}
			var polling []*auth.Cache
			for range 3 {
				_, v := database.process(t, auth.LookupOptions{Revision: database.readRevision, Poll: poll})
				polling = append(polling, v)
			}
			_, alone := database.process(t, auth.LookupOptions{})
			from := from(t, "192.0.2.1")
			signsIn := func(v *auth.Cache, id string) bool {
				_, err := v.Verify(from, id, "secret-of-"+id)
				if err != nil && !errors.Is(err, webhookcfg.ErrInvalidCredentials) {
					t.Error(err)
				}
				return err == nil
			}
			for range 3 {
				for _, v := range append(polling, alone) {
					if !signsIn(v, "a") || !signsIn(v, "b") {
						t.Error("a valid secret was refused")
					}
				}
				time.Sleep(time.Minute)
			}
			database.change(func() { delete(database.secrets, "a"); database.revision++ })
			if !signsIn(polling[0], "a") {
				t.Error("refused at once: nothing was cached, so this test shows nothing")
			}
			interval := max(poll, 2*time.Second)
			time.Sleep(interval)
			synctest.Wait()
			for i, v := range polling {
				if signsIn(v, "a") || !signsIn(v, "b") {
					t.Errorf("process %d: %v after the revocation, a signs in: %v, b: %v", i, interval, signsIn(v, "a"), signsIn(v, "b"))
				}
			}
			if !signsIn(alone, "a") {
				t.Error("refused in a process that doesn't poll: nothing was cached")
			}
		})
	}
}

// TestRevisionFails: while the number can't be read, caches go on as before, and Healthy says
// why. Then the change is noticed.
func TestRevisionFails(t *testing.T) {
	for name, fault := range map[string]func(context.Context) error{
		"error": func(context.Context) error { return errDown },
		"panic": func(context.Context) error { panic(errDown) },
		"hangs": func(ctx context.Context) error { <-ctx.Done(); return errors.Join(errDown, ctx.Err()) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				database := &secretTable{secrets: map[string]string{"a": "secret-of-a"}}
				lookup, v := database.process(t, auth.LookupOptions{Revision: database.readRevision})
				here := from(t, "192.0.2.1")
				wantHealth := func(want string) {
					t.Helper()
					time.Sleep(4 * time.Second) // one poll, at least
					if err := lookup.Healthy(t.Context()); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
						t.Errorf("Healthy returned %v, want %q", err, want)
					}
				}
				wantHealth("")
				if _, err := v.Verify(here, "a", "secret-of-a"); err != nil {
					t.Error(err)
				}
				database.change(func() { database.fault = fault; clear(database.secrets); database.revision++ })
				wantHealth(map[bool]string{false: errDown.Error(), true: "panic: value of type"}[name == "panic"])
				if _, err := v.Verify(here, "a", "secret-of-a"); err != nil {
					t.Errorf("what was cached is refused because of an outage: %v", err)
				}
				database.change(func() { database.fault = nil })
				wantHealth("")
				if _, err := v.Verify(here, "a", "secret-of-a"); !errors.Is(err, webhookcfg.ErrInvalidCredentials) {
					t.Errorf("after the outage, a revoked secret: %v", err)
				}
			})
		})
	}
}

// TestCloseOfLookup: nothing polls any more, and the Lookup still verifies.
func TestCloseOfLookup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		database := &secretTable{secrets: map[string]string{"a": "secret-of-a"}, revision: 7}
		lookup, _ := database.process(t, auth.LookupOptions{Revision: database.readRevision, Poll: time.Hour})
		time.Sleep(24 * time.Hour)
		for range 2 {
			if err := lookup.Close(); err != nil {
				t.Error(err)
			}
		}
		if database.polls < 23 || database.polls > 24 {
			t.Errorf("%d polls in 24 hours, want one each", database.polls)
		}
		time.Sleep(24 * time.Hour)
		if database.polls > 24 {
			t.Error("polls after Close")
		}
		mustSignIn(t, lookup, "a", "secret-of-a", "a")
		if got := lookup.Revision(); got != 7 {
			t.Errorf("revision %d, want 7", got)
		}
		still, _ := database.process(t, auth.LookupOptions{})
		if err := still.Close(); err != nil || still.Revision() != 0 || still.Healthy(t.Context()) != nil {
			t.Errorf("without polling: Close returned %v, revision %d, Healthy %v", err, still.Revision(), still.Healthy(t.Context()))
		}
	})
}

// TestPanicOfRevision: the error says that Revision panics, and withholds with what.
func TestPanicOfRevision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fail := func(context.Context) (uint64, error) { panic("connect to postgres://acme:s3cret@db") }
		lookup, _ := new(secretTable).process(t, auth.LookupOptions{Revision: fail, Poll: time.Hour})
		time.Sleep(2 * time.Hour)
		err := lookup.Healthy(t.Context())
		if err == nil || strings.Contains(err.Error(), "s3cret") || !strings.Contains(err.Error(), "panic: value of type string") {
			t.Errorf("got %v", err)
		}
	})
}
