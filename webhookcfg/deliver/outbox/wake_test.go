package outbox

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/webhookcfg/deliver"
)

// TestChanged: a client that sets its webhook again gets at once what waits for a retry, and
// nobody waits for the database meanwhile.
func TestChanged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var isRepaired atomic.Bool
		w.set("a", "", w.host(1, &peer{respond: func(string) int {
			if isRepaired.Load() {
				return 204
			}
			return 500
		}}))
		p := w.run(Options{Schedule: deliver.Schedule{time.Hour}}, deliver.Options{})
		defer p.stop()
		w.db.enqueue("a", "e", "m")
		time.Sleep(time.Minute)
		isRepaired.Store(true)
		w.set("a", "", "93.184.0.2:80")
		start := time.Now()
		p.box.Changed("a")
		if took := time.Since(start); took > 0 {
			t.Errorf("Changed took %v", took)
		}
		time.Sleep(time.Second)
		if w.db.waitingNow() > 0 {
			t.Error("the notification still waits a second later")
		}
	})
}

// TestChangedBeforeCopy: the sender's copy of the webhooks learns of a change after the queue, within
// the time that it may lag behind. What waits for a retry is sent then, also if nobody had the line.
func TestChangedBeforeCopy(t *testing.T) {
	t.Parallel()
	for _, quiet := range []time.Duration{2 * time.Second, time.Minute} {
		for _, late := range []time.Duration{0, 500 * time.Millisecond, 3 * time.Second, 14 * time.Second} {
			t.Run(fmt.Sprint(quiet, " quiet, ", late, " late"), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t)
					w.set("a", "", w.host(1, &peer{respond: func(string) int { return 500 }}))
					good := w.host(2, &peer{})
					p := w.run(Options{Schedule: deliver.Schedule{time.Hour}}, deliver.Options{})
					defer p.stop()
					w.db.enqueue("a", "e", "m")
					time.Sleep(quiet)
					set := time.Now()
					p.box.Changed("a")
					time.Sleep(late)
					w.set("a", "", good)
					w.mu.Lock()
					hook := w.webhooks["a/"]
					hook.Since = set
					w.webhooks["a/"] = hook
					w.mu.Unlock()
					time.Sleep(staleness + time.Second - late)
					if w.db.waitingNow() > 0 {
						t.Error("the notification still waits when the copy must have known of the new webhook")
					}
				})
			})
		}
	}
}

// TestChangedWhileDatabaseHangs: nothing is left of Changed half a minute later, however many clients
// have changed.
func TestChangedWhileDatabaseHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.db.takes = time.Hour
		box := newOutbox(&session{memory: w.db}, nil, Options{})
		if err := box.options.complete(); err != nil {
			t.Fatal(err)
		}
		for i := range 2 * maxChanged {
			box.Changed(fmt.Sprint("c", i))
		}
		box.mu.Lock()
		if len(box.changed) > maxChanged {
			t.Errorf("%d clients wait, want %d", len(box.changed), maxChanged)
		}
		box.mu.Unlock()
		time.Sleep(2 * callTimeout)
		synctest.Wait()
		box.mu.Lock()
		defer box.mu.Unlock()
		if box.waking || len(box.changed) > 0 {
			t.Error("it's still waking clients")
		}
	})
}

// TestSetAgainAndAgain: a client sets its webhook every second, to one of two receivers that fail. How
// much is read then doesn't depend on how much waits, and once one of them works, the next set sends
// what waits at once.
func TestSetAgainAndAgain(t *testing.T) {
	t.Parallel()
	for _, n := range []int{sized(100, 1000), sized(600, 5000)} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const sets = 30
				w := newWorld(t)
				w.db.takes = 20 * time.Millisecond
				var isRepaired atomic.Bool
				w.set("a", "", w.host(1, &peer{takes: 20 * time.Millisecond, respond: func(string) int {
					if isRepaired.Load() {
						w.mu.Lock()
						w.delivered++
						w.mu.Unlock()
						return 204
					}
					return 503
				}}))
				w.host(2, &peer{takes: 20 * time.Millisecond, respond: func(string) int { return 503 }})
				for i := range n {
					w.db.enqueue("a", fmt.Sprint("e", i), fmt.Sprint("m", i))
				}
				p := w.run(Options{}, deliver.Options{})
				defer p.stop()
				time.Sleep(time.Minute)
				reads := func() int { calls := w.db.counted(); return calls["fresh"] + calls["waiting"] }
				before := reads()
				for i := range sets {
					w.set("a", "", fmt.Sprint("93.184.0.", 2+(i+1)%2, ":80"))
					p.box.Changed("a")
					time.Sleep(time.Second)
				}
				perSet := float64(reads()-before) / sets
				isRepaired.Store(true)
				w.set("a", "", "93.184.0.2:80")
				p.box.Changed("a")
				time.Sleep(time.Second)
				t.Logf("%.1f reads a set, %d delivered within a second", perSet, w.deliveries())
				if perSet > 10 || w.deliveries() == 0 {
					t.Errorf("%.1f reads a set, want 10; %d delivered within a second", perSet, w.deliveries())
				}
			})
		})
	}
}
