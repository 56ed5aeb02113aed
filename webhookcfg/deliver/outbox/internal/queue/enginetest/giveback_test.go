package enginetest

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"example.com/go-webhookcfg/webhookcfg/deliver/outbox/internal/line"
	"example.com/go-webhookcfg/webhookcfg/deliver/outbox/internal/queue"
)

// A line that has had nothing to do for five seconds is given back, which takes a moment. In these tests
// clients have something at times that are this far apart.
const apart = 5 * time.Millisecond

// TestNewsWhileGivenBack: what's enqueued while a line is given back goes out at once.
func TestNewsWhileGivenBack(t *testing.T) {
	inBubble(t, func(w *world) {
		const leaving = 100
		for i := range leaving {
			w.set(fmt.Sprint("c", i), "", "good")
			w.enqueue(fmt.Sprint("c", i), "e", 1)
		}
		p := w.start(queue.Options{Clients: 2 * leaving})
		defer p.end()
		w.within(2 * time.Second)
		time.Sleep(4900 * time.Millisecond)
		least := leaving
		for i := range leaving {
			w.enqueue(fmt.Sprint("c", i), "e", 1)
			time.Sleep(apart)
			least = min(least, p.Figures().Held)
		}
		if least > leaving/2 {
			t.Fatalf("%d of %d lines were kept", least, leaving)
		}
		t.Log(w.within(time.Second))
	})
}

// TestSetWhileGivenBack: what waits for a webhook that another process sets while its line is given back goes
// out at once.
func TestSetWhileGivenBack(t *testing.T) {
	inBubble(t, func(w *world) {
		w.receives("bad", receiver{takes: 5 * time.Millisecond, fails: line.Failure})
		p := w.start(queue.Options{})
		defer p.end()
		other := queue.New(w.tables(w.db), sender{p}, queue.Options{})
		kept := 0
		const rounds = 30
		for i := range rounds { // one after another, so that nothing else makes the process look
			name := fmt.Sprint("c", i)
			w.set(name, "", "bad")
			w.enqueue(name, "e", 1)
			for before := w.arrived(); w.arrived() < before+2; { // the next retry is due 20 seconds later
				time.Sleep(apart)
			}
			time.Sleep(5*time.Second + time.Duration(i)*apart)
			kept += p.Figures().Held
			w.set(name, "", "good")
			if err := other.Mark(w.t.Context(), name, ""); err != nil {
				t.Fatal(err)
			}
			w.within(time.Second)
			time.Sleep(10 * time.Second)
		}
		if kept == 0 || kept == rounds {
			t.Errorf("%d of %d lines were kept, want some", kept, rounds)
		}
	})
}

// TestUnreadMarks: a set isn't forgotten if it couldn't be read at first.
func TestUnreadMarks(t *testing.T) {
	inBubble(t, func(w *world) {
		w.set("acme", "", "bad")
		w.receives("bad", receiver{takes: 5 * time.Millisecond, fails: line.Failure})
		p := w.start(queue.Options{})
		defer p.end()
		w.enqueue("acme", "e", 1)
		for w.arrived() < 2 {
			time.Sleep(apart)
		}
		var refused atomic.Int64
		p.faults.refuse(func(query string) bool {
			return strings.Contains(query, "FROM wh_outbox_mark") && refused.Add(1) == 1
		})
		w.set("acme", "", "good")
		other := queue.New(w.tables(w.db), sender{p}, queue.Options{})
		if err := other.Mark(w.t.Context(), "acme", ""); err != nil {
			t.Fatal(err)
		}
		t.Log(w.within(3 * time.Second))
		if refused.Load() == 0 {
			t.Error("nobody has looked at marks")
		}
	})
}
