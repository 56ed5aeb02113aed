package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"example.com/go-webhookcfg/store/cache"
)

// feedTest is a feed that was called once, and the watch that this started.
type feedTest struct {
	t       *testing.T
	store   *Store
	kv      *fakeKV
	watcher *fakeWatcher
	watch   *fakeWatch
	next    string
}

// runFeedTest runs a test with a fake clock.
func runFeedTest(t *testing.T, do func(s *feedTest)) {
	synctest.Test(t, func(t *testing.T) {
		s := &feedTest{t: t}
		s.store, s.kv, s.watcher = newFakeStore(t)
		s.next = s.expectReset(s.call("")).Next
		s.watch = <-s.watcher.started
		if s.watch.from != 11 {
			t.Errorf("the watch starts at %d", s.watch.from)
		}
		do(s)
		if err := s.store.Close(); err != nil {
			t.Error(err)
		}
	})
}

type outcome struct {
	changes cache.Changes
	err     error
}

// call calls Changes in a goroutine.
func (s *feedTest) call(since string) <-chan outcome {
	out := make(chan outcome, 1)
	go func() {
		changes, err := s.store.Changes(s.t.Context(), since)
		out <- outcome{changes, err}
	}()
	return out
}

func (s *feedTest) expectReset(out <-chan outcome) cache.Changes {
	s.t.Helper()
	got := <-out
	if got.err != nil || !got.changes.Reset || len(got.changes.Clients) > 0 || got.changes.Next == "" {
		s.t.Fatalf("got %+v, want a Reset", got)
	}
	return got.changes
}

// expectClients expects clients, and continues with the next cursor.
func (s *feedTest) expectClients(out <-chan outcome, clients ...string) {
	s.t.Helper()
	got := <-out
	if got.err != nil || got.changes.Reset || !slices.Equal(got.changes.Clients, clients) {
		s.t.Fatalf("got %+v, want %q", got, clients)
	}
	s.next = got.changes.Next
}

// expectPending expects that a call hasn't returned.
func (s *feedTest) expectPending(out <-chan outcome) {
	s.t.Helper()
	synctest.Wait()
	select {
	case got := <-out:
		s.t.Fatalf("got %+v before the watch has passed", got)
	default:
	}
}

func TestBarrier(t *testing.T) {
	runFeedTest(t, func(s *feedTest) {
		s.expectClients(s.call(s.next)) // nothing new, and nothing to wait for
		s.kv.revision = 13
		out := s.call(s.next)
		s.expectPending(out)
		if len(s.watcher.asked) == 0 {
			t.Error("no progress was requested")
		}
		s.watch.responses <- event(11, "acme") // its header has a later revision
		s.watch.responses <- event(12, "zeta")
		s.expectPending(out)
		s.watch.responses <- progress(12)
		s.expectPending(out)
		s.watch.responses <- progress(13)
		s.expectClients(out, "acme", "zeta")
		s.expectClients(s.call(s.next))
		s.kv.revision = 14
		out = s.call(s.next)
		s.watch.responses <- event(14, "acme")
		s.expectClients(out, "acme")
	})
}

// TestBarrierTimeout: a call waits until its deadline, and for two seconds without one.
func TestBarrierTimeout(t *testing.T) {
	runFeedTest(t, func(s *feedTest) {
		s.kv.revision = 11
		for _, limit := range []time.Duration{0, 100 * time.Millisecond, time.Minute} {
			ctx, want := s.t.Context(), barrierTimeout
			if limit > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, limit)
				defer cancel()
				want = limit
			}
			started := time.Now()
			changes, err := s.store.Changes(ctx, s.next)
			if !errors.Is(err, errBehind) || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %+v, %v", changes, err)
			}
			if took := time.Since(started); took != want {
				t.Errorf("it took %s, want %s", took, want)
			}
		}
	})
}

// TestHistoryIsBounded: a feed that's further behind than the history reaches gets a Reset.
func TestHistoryIsBounded(t *testing.T) {
	runFeedTest(t, func(s *feedTest) {
		const first = 11
		changes := func(from, count int64) (all clientv3.WatchResponse) {
			all.Header = &etcdserverpb.ResponseHeader{}
			for n := range count {
				all.Events = append(all.Events, event(from+n, fmt.Sprint("client-", n%2)).Events...)
			}
			return all
		}
		s.kv.revision = first + maxHistory - 1
		out := s.call(s.next)
		s.watch.responses <- changes(first, maxHistory)
		s.expectClients(out, "client-0", "client-1")
		behind := s.next
		s.kv.revision += maxHistory + 1
		out = s.call(behind)
		s.watch.responses <- changes(first+maxHistory, maxHistory+1)
		s.expectReset(out)
	})
}

// TestRepeatedEvents: a lagging member can repeat the events of another.
func TestRepeatedEvents(t *testing.T) {
	runFeedTest(t, func(s *feedTest) {
		s.kv.revision = 13
		for _, client := range []string{"acme", "beta"} {
			for n := range int64(3) {
				s.watch.responses <- event(11+n, client)
			}
		}
		s.watch.responses <- progress(12)
		s.expectClients(s.call(s.next), "acme")
		if got := s.store.watch.position(); got != 13 {
			t.Errorf("the watch has passed %d", got)
		}
	})
}

// TestStalledWatchRestarts: a silent watch is restarted where it stopped, but only while a
// barrier waits.
func TestStalledWatchRestarts(t *testing.T) {
	runFeedTest(t, func(s *feedTest) {
		s.watch.responses <- event(12, "acme")
		time.Sleep(time.Hour)
		if len(s.watcher.started) > 0 {
			t.Error("an idle watch was restarted")
		}
		s.kv.revision = 14
		out := s.call(s.next)
		if s.watch = <-s.watcher.started; s.watch.from != 13 {
			t.Errorf("the watch starts at %d", s.watch.from)
		}
		s.watch.responses <- event(14, "zeta")
		s.expectClients(out, "acme", "zeta")
	})
}

func TestCompaction(t *testing.T) {
	runFeedTest(t, func(s *feedTest) {
		s.kv.revision = 20
		out := s.call(s.next)
		s.expectPending(out)
		s.watch.responses <- compacted(15)
		if s.watch = <-s.watcher.started; s.watch.from != 16 {
			t.Errorf("the watch starts at %d", s.watch.from)
		}
		s.expectPending(out)
		s.watch.responses <- progress(20)
		s.next = s.expectReset(out).Next
		s.kv.revision = 21
		out = s.call(s.next)
		s.watch.responses <- event(21, "acme")
		s.expectClients(out, "acme")
	})
}

// TestRestored: the cluster is another one, or went back to an earlier revision.
func TestRestored(t *testing.T) {
	for name, restore := range map[string]func(*fakeKV){
		"another cluster": func(kv *fakeKV) { kv.cluster, kv.revision = 2, 30 },
		"an old backup":   func(kv *fakeKV) { kv.revision = 8 },
	} {
		t.Run(name, func(t *testing.T) {
			runFeedTest(t, func(s *feedTest) {
				restore(s.kv)
				next := s.expectReset(s.call(s.next)).Next
				if s.watch = <-s.watcher.started; s.watch.from != s.kv.revision+1 {
					t.Errorf("the watch starts at %d", s.watch.from)
				}
				s.kv.revision++
				out := s.call(next)
				s.watch.responses <- event(s.kv.revision, "acme")
				s.expectClients(out, "acme")
				s.expectReset(s.call(s.next[:len(s.next)-1]))
			})
		})
	}
}

// TestOwnStream: each store selects a stream that no other watch of the client has.
func TestOwnStream(t *testing.T) {
	runFeedTest(t, func(one *feedTest) {
		other, _, watcher := newFakeStore(one.t)
		if _, err := other.Changes(one.t.Context(), ""); err != nil {
			one.t.Fatal(err)
		}
		streams := [...][]string{one.watch.stream, (<-watcher.started).stream}
		if err := other.Close(); err != nil {
			one.t.Error(err)
		}
		if len(streams[0]) != 1 || len(streams[1]) != 1 || streams[0][0] == streams[1][0] {
			one.t.Errorf("the streams are %q", streams)
		}
	})
}

// TestLateResponse: a response of a watch from before the cluster was restored isn't progress
// afterwards.
func TestLateResponse(t *testing.T) {
	runFeedTest(t, func(s *feedTest) {
		s.kv.revision = 8
		s.watcher.late <- progress(30)
		s.next = s.expectReset(s.call(s.next)).Next
		s.kv.revision = 9
		out := s.call(s.next)
		s.expectPending(out)
		s.watch = <-s.watcher.started
		s.watch.responses <- event(9, "acme")
		s.expectClients(out, "acme")
	})
}

func TestCursors(t *testing.T) {
	runFeedTest(t, func(s *feedTest) {
		for _, cursor := range []string{"", ".", "x", s.next + "0", s.next + "x", "x" + s.next, "x.10"} {
			s.expectReset(s.call(cursor))
		}
		s.expectClients(s.call(s.next))
	})
}

func TestCloseWhileWaiting(t *testing.T) {
	runFeedTest(t, func(s *feedTest) {
		s.kv.revision = 11
		out, notifications := s.call(s.next), s.store.Notify(s.t.Context())
		s.expectPending(out)
		if err := s.store.Close(); err != nil {
			t.Error(err)
		}
		if got := <-out; !errors.Is(got.err, ErrClosed) {
			t.Errorf("got %+v", got)
		}
		if _, ok := <-notifications; ok {
			t.Error("a notification after Close")
		}
	})
}
