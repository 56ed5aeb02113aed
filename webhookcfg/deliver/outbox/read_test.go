package outbox

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/webhookcfg/deliver"
)

// TestNewAfterFailures: what is new leaves at once, although retries wait for hours, if its receiver
// was paused and works again, or if many others have failed.
func TestNewAfterFailures(t *testing.T) {
	t.Parallel()
	for _, hosts := range []int{1, maxPauses + 2} {
		for order := range AnyOrder + 1 {
			t.Run(fmt.Sprint(hosts, " hosts, order ", order), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t)
					var works atomic.Bool
					respond := func(string) int {
						if works.Load() {
							return http.StatusNoContent
						}
						return http.StatusServiceUnavailable
					}
					n := max(hosts, 5) // one receiver fails until it's paused, and many don't
					for i := range n {
						w.set("a", fmt.Sprint("e", i), w.host(i%hosts+1, &peer{respond: respond}))
					}
					w.set("a", "", w.host(hosts+1, &peer{respond: respond}))
					p := w.run(Options{Order: order, Schedule: deliver.Schedule{time.Hour, time.Hour}}, deliver.Options{})
					defer p.stop()
					for i := range n {
						w.db.enqueue("a", fmt.Sprint("e", i), fmt.Sprint("m", i))
					}
					w.await(n, 10*time.Second)
					time.Sleep(time.Minute)
					if p.has("a") {
						t.Fatal("the line wasn't given back")
					}
					works.Store(true)
					before := w.db.counted()
					w.db.enqueue("a", "e0", "again")
					w.db.enqueue("a", "other", "new")
					if order == InOrder {
						n-- // the first one waits for the retries of its entity
					}
					w.await(n+2, time.Second)
					time.Sleep(10 * time.Second)
					after := w.db.counted()
					if reads := after["fresh"] + after["waiting"] - before["fresh"] - before["waiting"]; reads > 20 {
						t.Errorf("%d reads for two notifications", reads)
					}
				})
			})
		}
	}
}

// TestRest: a line rests if it finds nothing of what there should be, and still hears of what is
// committed.
func TestRest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.set("a", "", w.host(1, &peer{}))
		p := w.run(Options{}, deliver.Options{})
		defer p.stop()
		w.db.mu.Lock()
		w.db.blind = true
		w.db.mu.Unlock()
		w.db.enqueue("a", "e", "m1")
		time.Sleep(10 * time.Second)
		if reads := w.db.counted()["fresh"]; reads < 10 || reads > 40 {
			t.Errorf("%d reads in ten seconds, want about two a second", reads)
		}
		w.db.mu.Lock()
		w.db.blind = false
		w.db.mu.Unlock()
		w.db.enqueue("a", "e", "m2")
		p.box.Committed("a")
		w.await(2, 100*time.Millisecond)
	})
}
