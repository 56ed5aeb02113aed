package etcdstore

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
)

// scene is a feed that has been called once, and the watch that it began.
type scene struct {
	t       *testing.T
	store   *Store
	kv      *fakeKV
	watcher *fakeWatcher
	watch   *fakeWatch
	next    string
}

// play plays a scene in a bubble of time.
func play(t *testing.T, do func(s *scene)) {
	synctest.Test(t, func(t *testing.T) {
		s := &scene{t: t}
		s.store, s.kv, s.watcher = newFakeStore(t)
		s.next = s.reset(s.call("")).Next
		s.watch = <-s.watcher.begun
		if s.watch.from != 11 {
			t.Errorf("the watch begins at %d", s.watch.from)
		}
		do(s)
		if err := s.store.Close(); err != nil {
			t.Error(err)
		}
	})
}

type outcome struct {
	changes webhookcfg.Changes
	err     error
}

// call calls Changes beside the scene.
func (s *scene) call(since string) <-chan outcome {
	out := make(chan outcome, 1)
	go func() {
		changes, err := s.store.Changes(s.t.Context(), since)
		out <- outcome{changes, err}
	}()
	return out
}

func (s *scene) reset(out <-chan outcome) webhookcfg.Changes {
	s.t.Helper()
	got := <-out
	if got.err != nil || !got.changes.Reset || len(got.changes.Clients) > 0 || got.changes.Next == "" {
		s.t.Fatalf("got %+v, want a Reset", got)
	}
	return got.changes
}

// names expects clients, and goes on from there.
func (s *scene) names(out <-chan outcome, clients ...string) {
	s.t.Helper()
	got := <-out
	if got.err != nil || got.changes.Reset || !slices.Equal(got.changes.Clients, clients) {
		s.t.Fatalf("got %+v, want %q", got, clients)
	}
	s.next = got.changes.Next
}

// waits expects that a call has no answer yet.
func (s *scene) waits(out <-chan outcome) {
	s.t.Helper()
	synctest.Wait()
	select {
	case got := <-out:
		s.t.Fatalf("got %+v before the watch has passed", got)
	default:
	}
}

func TestBarrier(t *testing.T) {
	play(t, func(s *scene) {
		s.names(s.call(s.next)) // nothing new, and nothing to wait for
		s.kv.revision = 13
		out := s.call(s.next)
		s.waits(out)
		if len(s.watcher.asked) == 0 {
			t.Error("nobody asked for progress")
		}
		s.watch.says <- event(11, "acme") // its header names a later revision
		s.watch.says <- event(12, "zeta")
		s.waits(out)
		s.watch.says <- progress(12)
		s.waits(out)
		s.watch.says <- progress(13)
		s.names(out, "acme", "zeta")
		s.names(s.call(s.next))
		s.kv.revision = 14
		out = s.call(s.next)
		s.watch.says <- event(14, "acme")
		s.names(out, "acme")
	})
}

func TestBarrierFails(t *testing.T) {
	play(t, func(s *scene) {
		s.kv.revision = 11
		begun := time.Now()
		got := <-s.call(s.next)
		if !errors.Is(got.err, errBehind) || !errors.Is(got.err, context.DeadlineExceeded) {
			t.Errorf("got %+v", got)
		}
		if took := time.Since(begun); took != defaultBarrierTimeout {
			t.Errorf("it took %s", took)
		}
	})
}

// TestSaidAgain: a member that lags may say again what another one said.
func TestSaidAgain(t *testing.T) {
	play(t, func(s *scene) {
		s.kv.revision = 13
		for _, client := range []string{"acme", "beta"} {
			for n := range int64(3) {
				s.watch.says <- event(11+n, client)
			}
		}
		s.watch.says <- progress(12)
		s.names(s.call(s.next), "acme")
		if got := s.store.watch.position(); got != 13 {
			t.Errorf("the watch has passed %d", got)
		}
	})
}

// TestWatchIsBegunAnew: one that is silent while a barrier waits is, from where it
// was, and one that is silent while nobody waits is not.
func TestWatchIsBegunAnew(t *testing.T) {
	play(t, func(s *scene) {
		s.watch.says <- event(12, "acme")
		time.Sleep(time.Hour)
		if len(s.watcher.begun) > 0 {
			t.Error("an idle watch was begun anew")
		}
		s.kv.revision = 14
		out := s.call(s.next)
		if s.watch = <-s.watcher.begun; s.watch.from != 13 {
			t.Errorf("the watch begins at %d", s.watch.from)
		}
		s.watch.says <- event(14, "zeta")
		s.names(out, "acme", "zeta")
	})
}

func TestCompaction(t *testing.T) {
	play(t, func(s *scene) {
		s.kv.revision = 20
		out := s.call(s.next)
		s.waits(out)
		s.watch.says <- compacted(15)
		if s.watch = <-s.watcher.begun; s.watch.from != 16 {
			t.Errorf("the watch begins at %d", s.watch.from)
		}
		s.waits(out)
		s.watch.says <- progress(20)
		s.next = s.reset(out).Next
		s.kv.revision = 21
		out = s.call(s.next)
		s.watch.says <- event(21, "acme")
		s.names(out, "acme")
	})
}

// TestRestored: the cluster is another one, or is at a revision that it was past.
func TestRestored(t *testing.T) {
	for name, restore := range map[string]func(*fakeKV){
		"another cluster": func(kv *fakeKV) { kv.cluster, kv.revision = 2, 30 },
		"an old backup":   func(kv *fakeKV) { kv.revision = 8 },
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(s *scene) {
				restore(s.kv)
				next := s.reset(s.call(s.next)).Next
				if s.watch = <-s.watcher.begun; s.watch.from != s.kv.revision+1 {
					t.Errorf("the watch begins at %d", s.watch.from)
				}
				s.kv.revision++
				out := s.call(next)
				s.watch.says <- event(s.kv.revision, "acme")
				s.names(out, "acme")
				s.reset(s.call(s.next[:len(s.next)-1]))
			})
		})
	}
}

func TestCursors(t *testing.T) {
	play(t, func(s *scene) {
		for _, cursor := range []string{"", ".", "x", s.next + "0", s.next + "x", "x" + s.next, "x.10"} {
			s.reset(s.call(cursor))
		}
		s.names(s.call(s.next))
	})
}

func TestCloseWhileWaiting(t *testing.T) {
	play(t, func(s *scene) {
		s.kv.revision = 11
		out, hints := s.call(s.next), s.store.Wake(s.t.Context())
		s.waits(out)
		if err := s.store.Close(); err != nil {
			t.Error(err)
		}
		if got := <-out; !errors.Is(got.err, ErrClosed) {
			t.Errorf("got %+v", got)
		}
		if _, ok := <-hints; ok {
			t.Error("a hint after Close")
		}
	})
}
