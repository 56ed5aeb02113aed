package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/deliver/outbox"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// A process may send that many statements for an event, and a few as time goes by, since it looks
// for work.
const (
	perEvent  = 150
	perSecond = 20
)

// metered is a fixture with a process whose statements are counted.
type metered struct {
	*fixture
	box    *outbox.Outbox // of that process
	broken atomic.Bool    // the receivers fail

	statements atomic.Int64
	events     int64
	start      time.Time
}

// reset starts to count.
func (f *metered) reset() {
	f.statements.Store(0)
	f.events, f.start = 0, time.Now()
}

// check fails the test if there were too many statements.
func (f *metered) check() {
	f.t.Helper()
	n, took := f.statements.Load(), time.Since(f.start)
	if most := perEvent*f.events + perSecond*int64(took/time.Second+1); n > most {
		f.t.Fatalf("%d statements for %d events in %v, want at most %d", n, f.events, took.Round(time.Millisecond), most)
	}
}

// until waits until something is so, or there were too many statements.
func (f *metered) until(isSo func() bool) {
	f.t.Helper()
	for ; !isSo(); time.Sleep(time.Millisecond) {
		f.check()
	}
	f.check()
}

func newMetered(t *testing.T, e engineCase, resolve func(entity string) error) *metered {
	f := &metered{fixture: newFixture(t, e, nil, nil)}
	f.respond = func(w http.ResponseWriter, _ *http.Request) {
		if f.broken.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}
	f.store = lookups{f.store, resolve}
	db, _ := f.wired(func(call) (before, after error) {
		f.statements.Add(1)
		return nil, nil
	})
	f.box = f.peer(e, db, outbox.Options{Schedule: deliver.Schedule{time.Hour, time.Hour}})
	f.reset()
	f.runBox(f.box)
	return f
}

// lookups is a store whose lookups can fail.
type lookups struct {
	webhookcfg.Store
	resolve func(entity string) error
}

func (l lookups) Resolve(ctx context.Context, client, entity string) (webhookcfg.Webhook, error) {
	if l.resolve != nil {
		if err := l.resolve(entity); err != nil {
			return webhookcfg.Webhook{}, err
		}
	}
	return l.Store.Resolve(ctx, client, entity)
}

// send enqueues a notification as an event.
func (f *metered) send(entity, id string) {
	f.events++
	f.enqueue("a", entity, id)
	f.box.Committed("a")
}

func (f *metered) has(id string) func() bool {
	return func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return len(f.arrivals[id]) > 0
	}
}

// override sets the webhook of an entity at a host of its own.
func (f *metered) override(entity string, host int) {
	url := strings.Replace(f.server.URL, "127.0.0.1", fmt.Sprint("127.0.0.", host), 1)
	f.apply(webhookcfg.SetChange("a", webhookcfg.Entity(entity), egress.NewURL(url)))
}

// TestStatementsPerEvent: a line reads the database because something has happened, not all the time,
// and what is new leaves although what has failed before waits for hours.
func TestStatementsPerEvent(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		test func(t *testing.T, e engineCase)
	}{
		{"a receiver was paused", func(t *testing.T, e engineCase) {
			f := newMetered(t, e, nil)
			f.set("a", "/")
			f.broken.Store(true)
			for i := range 5 {
				f.send("e", fmt.Sprint("fails", i))
				f.until(f.has(fmt.Sprint("fails", i)))
			}
			time.Sleep(givenBack + pause)
			f.check()
			f.broken.Store(false)
			f.reset()
			f.send("e", "new")
			f.until(f.has("new"))
		}},
		{"130 hosts have failed", func(t *testing.T, e engineCase) {
			f := newMetered(t, e, nil)
			f.broken.Store(true)
			const hosts = 130
			for i := range hosts {
				f.override(fmt.Sprint("e", i), i+1)
				f.send(fmt.Sprint("e", i), fmt.Sprint("fails", i))
			}
			for i := range hosts {
				f.until(f.has(fmt.Sprint("fails", i)))
			}
			time.Sleep(givenBack)
			f.check()
			f.broken.Store(false)
			f.reset()
			f.override("new", hosts+1)
			f.send("new", "new")
			f.until(f.has("new"))
		}},
		{"a resolver fails", func(t *testing.T, e engineCase) {
			var fails atomic.Bool
			var failed atomic.Int64
			f := newMetered(t, e, func(entity string) error {
				if entity == "good" || !fails.Load() {
					return nil
				}
				failed.Add(1)
				return errors.New("not now")
			})
			f.set("a", "/")
			fails.Store(true)
			for i := range 20 {
				f.send(fmt.Sprint("e", i), fmt.Sprint("waits", i))
			}
			f.until(func() bool { return failed.Load() > 60 })
			f.send("good", "good")
			f.until(f.has("good"))
			fails.Store(false)
			for i := range 20 {
				f.until(f.has(fmt.Sprint("waits", i)))
			}
		}},
		{"nothing happens", func(t *testing.T, e engineCase) {
			f := newMetered(t, e, nil)
			f.set("a", "/")
			f.send("e", "m")
			f.until(f.has("m"))
			f.reset()
			f.events = 1 // it looks often for a moment
			time.Sleep(givenBack)
			f.check()
			f.reset()
			time.Sleep(3 * time.Second)
			if n := f.statements.Load(); n > 3*10 {
				t.Errorf("%d statements in 3 seconds", n)
			}
			t.Logf("%.1f statements a second", float64(f.statements.Load())/3)
		}},
	}
	var all together
	for _, e := range engines {
		for _, test := range tests {
			all.start(t, e.name+" "+test.name, func(t *testing.T) { test.test(t, e) })
		}
	}
	all.wait()
}

const (
	// givenBack is longer than a process keeps a line without work. If a slow machine hasn't given
	// it back by then, the test only sees less.
	givenBack = 7 * time.Second
	// pause is that of a receiver after five failures.
	pause = 5 * time.Second
)
