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

// TestChangedWhileDatabaseHangs: nothing is left of Changed half a minute later, however many clients
// have changed.
func TestChangedWhileDatabaseHangs(t *testing.T) {
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
