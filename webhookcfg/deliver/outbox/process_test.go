package outbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/webhookcfg/deliver"
)

// TestKilled: what a killed process was doing, another one does within five seconds, and only
// that arrives twice.
func TestKilled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const n, takes = 1000, 20 * time.Millisecond
		w := newWorld(t)
		w.set("a", "", w.host(1, &peer{takes: takes}))
		for i := range n {
			w.db.enqueue("a", fmt.Sprint("e", i), fmt.Sprint("m", i))
		}
		first := w.run(Options{}, deliver.Options{})
		w.await(200, time.Minute)
		second := w.run(Options{}, deliver.Options{})
		defer second.stop()
		killed := time.Since(w.start)
		first.kill()
		before := w.arrived()
		w.await(before+1, time.Minute)
		if took := time.Since(w.start) - killed; took > 5*time.Second {
			t.Errorf("went on after %v, want 5s", took)
		}
		for w.db.waitingNow() > 0 {
			time.Sleep(time.Second)
		}
		// 4 were under way, and 4 end every 20 milliseconds.
		if twice := w.arrived() - n; twice > 4+4*5 {
			t.Errorf("%d arrived twice", twice)
		}
	})
}

// TestCutOff: a process that can't reach the database starts nothing once another one may have
// its clients, and writes nothing when it can reach it again.
func TestCutOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const n, takes = 2000, 100 * time.Millisecond
		w := newWorld(t)
		address := w.host(1, &peer{takes: takes})
		w.set("a", "", address)
		for i := range n {
			w.db.enqueue("a", fmt.Sprint("e", i), fmt.Sprint("m", i))
		}
		first := w.run(Options{}, deliver.Options{})
		defer first.stop()
		w.await(100, time.Minute)
		second := w.run(Options{}, deliver.Options{})
		defer second.stop()
		cut := func(is bool) {
			w.db.mu.Lock()
			defer w.db.mu.Unlock()
			first.session.cut = is
		}
		cut(true)
		time.Sleep(10 * time.Second)
		cut(false)
		for w.db.waitingNow() > 0 {
			time.Sleep(time.Second)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.most[address] > 4 {
			t.Errorf("%d requests at a time, want 4", w.most[address])
		}
		if twice := len(w.arrivals) - n; twice > 200 {
			t.Errorf("%d arrived twice", twice)
		}
	})
}

// TestStop: when ctx ends, what is under way completes and is written, and another process
// goes on at once.
func TestStop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const n, takes = 200, 2 * time.Second
		w := newWorld(t)
		w.set("a", "", w.host(1, &peer{takes: takes}))
		for i := range n {
			w.db.enqueue("a", fmt.Sprint("e", i), fmt.Sprint("m", i))
		}
		first := w.run(Options{}, deliver.Options{})
		second := w.run(Options{}, deliver.Options{})
		defer second.stop()
		w.await(10, time.Minute)
		first.stop()
		second.box.Committed("a")
		for w.db.waitingNow() > 0 {
			time.Sleep(time.Second)
		}
		if got := w.arrived(); got != n {
			t.Errorf("%d arrivals, want %d", got, n)
		}
		if most := w.mostAt("93.184.0.2:80"); most > 4 {
			t.Errorf("%d requests at a time, want 4", most)
		}
	})
}

// TestDatabaseFails: while calls of the database fail, nothing is lost or sent twice.
func TestDatabaseFails(t *testing.T) {
	t.Parallel()
	for _, call := range []string{"join", "renew", "poll", "claim", "fresh", "waiting", "write", "leave", "wake"} {
		t.Run(call, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const n = 300
				w := newWorld(t)
				w.set("a", "", w.host(1, &peer{takes: 10 * time.Millisecond, respond: failFirst(w)}))
				p := w.run(Options{Schedule: deliver.Schedule{time.Second, time.Second, time.Second, time.Second, time.Second, time.Second, time.Second, time.Second}}, deliver.Options{})
				calls := 0
				w.db.mu.Lock()
				p.session.fail = func(name string) error {
					if calls++; name == call && calls%3 > 0 {
						return errors.New("deadlock detected")
					}
					return nil
				}
				w.db.mu.Unlock()
				for i := range n {
					w.db.enqueue("a", fmt.Sprint("e", i%10), fmt.Sprint("m", i))
					time.Sleep(10 * time.Millisecond)
				}
				for range 3600 {
					if w.db.waitingNow() == 0 {
						break
					}
					time.Sleep(time.Second)
				}
				p.stop()
				if w.db.waitingNow() > 0 {
					t.Errorf("%d still wait", w.db.waitingNow())
				}
				w.mu.Lock()
				defer w.mu.Unlock()
				for id, n := range w.ok {
					if n > 1 {
						t.Errorf("%s was delivered %d times", id, n)
					}
				}
			})
		})
	}
}

// failFirst returns a response that fails the first attempt of the messages that end in 7.
func failFirst(w *world) func(id string) int {
	return func(id string) int {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.attempts[id]++
		if id[len(id)-1] == '7' && w.attempts[id] == 1 {
			return 500
		}
		w.ok[id]++
		return 204
	}
}

// TestIdle: an idle process asks the database at most ten times a second.
func TestIdle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := w.run(Options{}, deliver.Options{})
		defer p.stop()
		time.Sleep(time.Minute)
		count := func() (n int) {
			for _, calls := range w.db.counted() {
				n += calls
			}
			return n
		}
		before := count()
		time.Sleep(time.Minute)
		if n := count() - before; n > 600 {
			t.Errorf("%d calls in a minute, want 600", n)
		}
	})
}

// TestPausesOfSendAgain: after each step of sending many again, others can write for as long as it
// took, or for a moment, whatever client the next step is for.
func TestPausesOfSendAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		const quick, slow = time.Millisecond, 300 * time.Millisecond
		w.db.again = map[string][]time.Duration{"a": {quick, slow}, "b": {slow, slow}, "c": {quick, quick, quick}}
		took := []time.Duration{quick, slow, quick, slow, slow, quick, quick} // a b c, a b c, c
		p := w.run(Options{}, deliver.Options{})
		time.Sleep(time.Minute)
		p.stop()
		if len(w.db.steps) != len(took) {
			t.Fatalf("%d steps, want %d", len(w.db.steps), len(took))
		}
		for i, at := range w.db.steps[1:] {
			if pause := at.Sub(w.db.steps[i]) - took[i]; pause < max(took[i], resendWait) {
				t.Errorf("a pause of %v after step %d, which took %v", pause, i, took[i])
			}
		}
	})
}

// TestInOrder: with InOrder, a notification that waits for a retry holds up the later ones of
// its entity, and no others.
func TestInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.set("a", "", w.host(1, &peer{takes: 10 * time.Millisecond, respond: func(id string) int {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.attempts[id]++
			if id == "x1" && w.attempts[id] < 3 {
				return 500
			}
			return 204
		}}))
		p := w.run(Options{Order: InOrder}, deliver.Options{})
		defer p.stop()
		for i := range 5 {
			w.db.enqueue("a", "x", fmt.Sprint("x", i))
			w.db.enqueue("a", "y", fmt.Sprint("y", i))
		}
		time.Sleep(3 * time.Second)
		w.db.enqueue("a", "x", "x5")
		time.Sleep(time.Hour)
		var got []string
		var last time.Duration // of the other entity
		for _, a := range w.all() {
			if a.id[0] == 'x' {
				got = append(got, a.id)
			} else {
				last = a.at
			}
		}
		if fmt.Sprint(got) != "[x0 x1 x1 x1 x2 x3 x4 x5]" || w.db.waitingNow() > 0 {
			t.Errorf("the entity's arrived as %v", got)
		}
		if last > time.Second {
			t.Errorf("the other entity's had to wait until %v", last)
		}
	})
}

// TestSlowRead: a notification that a read has found, and that is delivered and written down
// before the read has ended, isn't sent again.
func TestSlowRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const n = 300
		w := newWorld(t)
		w.set("a", "", w.host(1, &peer{takes: 10 * time.Millisecond}))
		w.db.lag = 200 * time.Millisecond
		p := w.run(Options{}, deliver.Options{})
		defer p.stop()
		for i := range n {
			w.db.enqueue("a", fmt.Sprint("e", i), fmt.Sprint("m", i))
			time.Sleep(10 * time.Millisecond)
		}
		for w.db.waitingNow() > 0 {
			time.Sleep(time.Second)
		}
		if got := w.arrived(); got != n {
			t.Errorf("%d arrivals, want %d", got, n)
		}
	})
}

// TestGiveBack: a notification that is enqueued while its line is given back isn't sent by the
// one who gave it back and by the one who takes it.
func TestGiveBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.set("a", "", w.host(1, &peer{takes: 200 * time.Millisecond}))
		p := w.run(Options{}, deliver.Options{})
		defer p.stop()
		const n = 100
		for i := range n {
			time.Sleep(hold + time.Duration(i)*10*time.Millisecond)
			w.db.enqueue("a", "e", fmt.Sprint("m", i))
			p.box.Committed("a")
		}
		time.Sleep(time.Minute)
		if got := w.arrived(); got != n {
			t.Errorf("%d arrivals, want %d", got, n)
		}
	})
}

// TestDatabaseHangs: a call of the database that never returns, for example since a network
// drops its packets, holds up a process for some seconds only.
func TestDatabaseHangs(t *testing.T) {
	t.Parallel()
	for _, call := range []string{"join", "renew", "poll", "bury", "claim", "fresh", "waiting", "write", "leads", "stats"} {
		t.Run(call, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.set("a", "", w.host(1, &peer{respond: failFirst(w)}))
				var log lockedBuffer
				p := w.run(Options{Schedule: deliver.Schedule{time.Second}, Logger: slog.New(slog.NewTextHandler(&log, nil))}, deliver.Options{})
				w.db.mu.Lock()
				hangs := true
				p.session.hang = func(name string) (hang bool) {
					hang = hangs && name == call
					hangs = hangs && !hang
					return hang
				}
				w.db.mu.Unlock()
				time.Sleep(10 * time.Second)
				if call == "bury" {
					w.db.mu.Lock()
					w.db.processes[1] = 0
					w.db.mu.Unlock()
					time.Sleep(5 * time.Second)
				}
				const n = 20
				for i := range n {
					w.db.enqueue("a", fmt.Sprint("e", i), fmt.Sprint("m", i))
				}
				time.Sleep(30 * time.Second)
				if left := w.db.waitingNow(); left > 0 {
					t.Errorf("%d of %d still wait", left, n)
				}
				time.Sleep(time.Minute)
				w.db.mu.Lock()
				if hangs {
					t.Error("nothing hung")
				}
				w.db.mu.Unlock()
				w.db.enqueue("late", "e", "unknown")
				w.db.mu.Lock()
				w.db.messages[n+1].enqueued = time.Now().Add(-time.Hour)
				p.session.fail = func(name string) error {
					if name == "poll" {
						return errCut
					}
					return nil
				}
				w.db.mu.Unlock()
				log.take()
				time.Sleep(2 * time.Minute)
				if text := log.take(); !strings.Contains(text, "overdue") {
					t.Errorf("what's overdue isn't logged:\n%s", text)
				}
				p.stopWithin(t, time.Second)
			})
		})
	}
}

// misfit is a database that Run can't work with.
type misfit struct {
	backend
	version, settings error
}

func (m misfit) check(context.Context) error { return m.version }

func (m misfit) join(context.Context, *identity, time.Duration, string) error { return m.settings }

// TestRunLogsWhyItEnds: even if nobody looks at Run's error, the log says at level Error why this
// process doesn't send.
func TestRunLogsWhyItEnds(t *testing.T) {
	t.Parallel()
	sender, err := deliver.New(newWorld(t), testKeys{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		queue  misfit
		sender *deliver.Sender
	}{
		"without a sender":                   {},
		"without tables":                     {misfit{version: ErrNoTables}, sender},
		"tables of a later version":          {misfit{version: ErrNewerSchema}, sender},
		"another process has other settings": {misfit{settings: errSettings}, sender},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			err := newOutbox(tt.queue, tt.sender, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}).Run(t.Context())
			if err == nil || !strings.Contains(log.String(), fmt.Sprintf("level=ERROR msg=%q error=%q\n", "outbox: Run has ended with an error", err)) || strings.Count(log.String(), "\n") != 1 {
				t.Errorf("got %v, logged %s", err, &log)
			}
		})
	}
}
