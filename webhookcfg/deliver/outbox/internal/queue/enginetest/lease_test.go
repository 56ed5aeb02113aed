package enginetest

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/deliver/outbox"
)

// leaseFor is how long a process has its clients after its last sign of life. It starts nothing in the
// last quarter.
const leaseFor = 3500 * time.Millisecond

// TestNoAttemptAfterLease: a process whose calls of the database hang starts attempts for as long as its
// lease is certainly valid, and none later. Another one goes on within five seconds.
func TestNoAttemptAfterLease(t *testing.T) {
	inSite(t, func(s *site) {
		const n = 200
		host := s.peer(0, &peer{takes: 200 * time.Millisecond})
		s.set("a", "", host)
		s.enqueueEach("a", "m", n)
		first := s.run(outbox.Options{}, deliver.Options{})
		s.awaitRequests(20, 5*time.Second, every)
		second := s.run(outbox.Options{}, deliver.Options{})
		time.Sleep(500 * time.Millisecond) // the process keeps the client for five seconds at least
		frozen := time.Since(s.start)
		thaw := first.faults.freeze()
		s.awaitRequests(1, 5*time.Second, func(r request) bool { return r.of == second })
		last := time.Duration(0)
		for _, r := range s.all(func(r request) bool { return r.of == first }) {
			last = max(last, r.at-frozen)
		}
		s.t.Logf("the last one %v after the freeze, the other process went on after %v", last, time.Since(s.start)-frozen)
		if last > leaseFor*3/4 || last < leaseFor/2 {
			s.t.Errorf("the last attempt started %v after the freeze, want shortly before %v", last, leaseFor*3/4)
		}
		thaw()
		s.await("the end", 30*time.Second, func() bool { return s.waiting() == 0 })
		if s.most[host] > 4 {
			s.t.Errorf("%d requests at a time, want 4", s.most[host])
		}
	})
}

// TestNoAttemptAfterSlowLookup: an attempt whose webhook is looked up for so long that the lease may have
// ended isn't made.
func TestNoAttemptAfterSlowLookup(t *testing.T) {
	inSite(t, func(s *site) {
		var isSlow atomic.Bool
		s.resolver = lookups{s.webhooks, func(ctx context.Context, _, _ string) error {
			if isSlow.Load() {
				time.Sleep(4 * time.Second)
			}
			return nil
		}}
		s.set("a", "", s.peer(0, &peer{takes: 200 * time.Millisecond}))
		s.enqueueEach("a", "m", 100)
		n := s.run(outbox.Options{}, deliver.Options{})
		s.awaitRequests(20, 5*time.Second, every)
		thaw := n.faults.freeze()
		isSlow.Store(true)
		time.Sleep(300 * time.Millisecond)
		isLater := s.since()
		time.Sleep(5 * time.Second)
		if got := s.count(isLater); got > 0 {
			s.t.Errorf("%d attempts", got)
		}
		isSlow.Store(false)
		thaw()
		s.await("the end", 30*time.Second, func() bool { return s.waiting() == 0 })
	})
}

// TestFrozenSendsNothingTwice: when a process that was frozen goes on, after others have its clients, it
// sends nothing and writes nothing of theirs. Only what was under way or not written arrives twice.
func TestFrozenSendsNothingTwice(t *testing.T) {
	inSite(t, func(s *site) {
		const n, takes = 400, 50 * time.Millisecond
		host := s.peer(0, &peer{takes: takes})
		s.set("a", "", host)
		s.enqueueEach("a", "m", n)
		first := s.run(outbox.Options{}, deliver.Options{})
		s.awaitRequests(100, 5*time.Second, every)
		second := s.run(outbox.Options{}, deliver.Options{})
		time.Sleep(500 * time.Millisecond)
		thaw := first.faults.freeze()
		time.Sleep(8 * time.Second)
		thawed := time.Since(s.start)
		thaw()
		s.await("the end", time.Minute, func() bool { return s.waiting() == 0 })
		if s.count(func(r request) bool { return r.of == second }) == 0 {
			s.t.Fatal("nobody took over")
		}
		// maxUnwritten outcomes, four under way, and as many as were being written.
		twice := s.count(func(r request) bool { return r.nth > 1 })
		s.t.Logf("%d arrived twice", twice)
		if twice > 2*64+8 {
			s.t.Errorf("%d arrived twice", twice)
		}
		if again := s.count(func(r request) bool { return r.nth > 1 && r.at > thawed && r.of == first }); again > 0 {
			s.t.Errorf("%d were sent again by the one that was frozen", again)
		}
		if s.most[host] > 4 {
			s.t.Errorf("%d requests at a time, want 4", s.most[host])
		}
	})
}

// TestKilledSender: what a killed process was doing, another one does within five seconds, and only that
// arrives twice.
func TestKilledSender(t *testing.T) {
	inSite(t, func(s *site) {
		const n, takes = 300, 20 * time.Millisecond
		s.set("a", "", s.peer(0, &peer{takes: takes}))
		s.enqueueEach("a", "m", n)
		first := s.run(outbox.Options{}, deliver.Options{})
		s.awaitRequests(200, 10*time.Second, every)
		s.run(outbox.Options{}, deliver.Options{})
		first.kill()
		isLater := s.since()
		s.t.Log("went on after", s.awaitRequests(1, 5*time.Second, isLater))
		s.await("the end", time.Minute, func() bool { return s.waiting() == 0 })
		// 4 were under way, and 4 end every 20 milliseconds, which are written every 50.
		if twice := s.count(every) - n; twice > 4+4*5 {
			s.t.Errorf("%d arrived twice", twice)
		}
	})
}

// TestGrace: a process that is told to stop starts nothing more, lets what's under way complete, writes
// it down, and gives its clients back, so another one goes on at once. Nothing arrives twice.
func TestGrace(t *testing.T) {
	inSite(t, func(s *site) {
		const n = 40
		host := s.peer(0, &peer{takes: 2 * time.Second})
		s.set("a", "", host)
		s.enqueueEach("a", "m", n)
		first := s.run(outbox.Options{}, deliver.Options{})
		s.awaitRequests(10, 10*time.Second, every)
		second := s.run(outbox.Options{}, deliver.Options{})
		time.Sleep(500 * time.Millisecond)
		before := s.count(every)
		first.stopWithin(2 * time.Second)
		if got := s.count(func(r request) bool { return r.of == first }); got != before {
			s.t.Errorf("%d attempts started while it stopped", got-before)
		}
		s.awaitRequests(1, 500*time.Millisecond, func(r request) bool { return r.of == second })
		s.awaitEnds(n, time.Minute)
		if s.count(every) != n || s.most[host] > 4 {
			s.t.Errorf("%d arrivals, want %d; %d at a time", s.count(every), n, s.most[host])
		}
	})
}

// TestGraceOfSlowReceiver: a process that is told to stop waits for as long as its sender may take.
func TestGraceOfSlowReceiver(t *testing.T) {
	inSite(t, func(s *site) {
		s.set("a", "", s.peer(0, &peer{takes: 25 * time.Second}))
		n := s.run(outbox.Options{}, deliver.Options{Timeout: 30 * time.Second})
		s.enqueue("a", "e", "m")
		s.awaitRequests(1, time.Second, every)
		n.stopWithin(26 * time.Second)
		if e := s.ended(isDelivered); len(e) != 1 {
			s.t.Errorf("%+v", e)
		}
	})
}

// TestGraceIsOver: an attempt that takes longer than the grace is abandoned, and made again by another
// process at once. It costs no attempt.
func TestGraceIsOver(t *testing.T) {
	inSite(t, func(s *site) {
		receiver := &peer{respond: does(0)}
		s.set("a", "", s.peer(0, receiver))
		first := s.run(outbox.Options{Grace: 2 * time.Second}, deliver.Options{})
		s.enqueue("a", "e", "m")
		s.awaitRequests(1, time.Second, every)
		s.run(outbox.Options{}, deliver.Options{})
		s.change(func() { receiver.respond = nil })
		first.stopWithin(2*time.Second + 100*time.Millisecond)
		s.awaitRequests(2, 2*time.Second, every)
		s.awaitEnds(1, time.Second)
		if e := s.ended(isDelivered); len(e) != 1 || e[0].Attempts != 1 {
			s.t.Errorf("%+v", e)
		}
	})
}

// TestRunLogsWhyItEnds: even if nobody looks at Run's error, the log says at level Error why this process
// doesn't send.
func TestRunLogsWhyItEnds(t *testing.T) {
	for name, prepare := range map[string]func(s *site) (hasSender bool){
		"without a sender":                   func(*site) bool { return false },
		"without tables":                     func(s *site) bool { s.exec(`DROP TABLE wh_outbox_message`); return true },
		"tables of a later version":          func(s *site) bool { s.exec(`UPDATE wh_outbox_schema SET version = 1000`); return true },
		"another process has other settings": func(s *site) bool { s.run(outbox.Options{}, deliver.Options{}); synctest.Wait(); return true },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *site) {
				var sender *deliver.Sender
				if prepare(s) {
					var err error
					if sender, err = deliver.New(s.resolver, s.keys, nil); err != nil {
						t.Fatal(err)
					}
				}
				log := new(journal)
				box := s.outbox(s.db, sender, outbox.Options{Schedule: deliver.Schedule{time.Hour}, Logger: slog.New(slog.NewTextHandler(io.MultiWriter(log, t.Output()), nil))})
				err := box.Run(t.Context())
				text := log.take()
				if err == nil || !strings.Contains(text, "level=ERROR") || !strings.Contains(text, "Run has ended with an error") || strings.Count(text, "\n") != 1 {
					t.Errorf("got %v, logged %s", err, text)
				}
			})
		})
	}
}
