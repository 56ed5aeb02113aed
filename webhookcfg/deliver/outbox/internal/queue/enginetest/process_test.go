package enginetest

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/webhookcfg/deliver/outbox/internal/line"
	"example.com/go-webhookcfg/webhookcfg/deliver/outbox/internal/queue"
)

// inBubble runs a test in a world in virtual time.
func inBubble(t *testing.T, test func(w *world)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		defer w.db.Close()
		test(w)
	})
}

// TestOneClient: what's enqueued goes out at once, in the order in which it was enqueued.
func TestOneClient(t *testing.T) {
	inBubble(t, func(w *world) {
		w.set("acme", "", "good")
		p := w.start(queue.Options{})
		defer p.end()
		time.Sleep(time.Second)
		w.enqueue("acme", "e1", 50)
		w.enqueue("acme", "e2", 50)
		t.Log(w.within(2 * time.Second))
		seen := make(map[string]int)
		for _, a := range w.arrivals {
			s := w.sent[a.id]
			if s.seq < seen[s.entity] {
				t.Errorf("%s of %s comes after %d", a.id, s.entity, seen[s.entity])
			}
			seen[s.entity] = s.seq
		}
	})
}

// TestKill: what a killed process had goes out within five seconds.
func TestKill(t *testing.T) {
	inBubble(t, func(w *world) {
		w.mayRepeat = true
		w.set("acme", "", "good")
		w.receives("good", receiver{takes: 100 * time.Millisecond})
		first := w.start(queue.Options{})
		time.Sleep(time.Second)
		second := w.start(queue.Options{})
		defer second.end()
		for i := range 20 {
			w.set(fmt.Sprint("c", i), "", "good")
			for e := range 4 {
				w.enqueue(fmt.Sprint("c", i), fmt.Sprint("e", e), 25)
			}
		}
		time.Sleep(300 * time.Millisecond)
		first.kill()
		t.Log(w.within(16 * time.Second))
	})
}

// TestShare: a process that comes has its share of the clients within seconds, and one that leaves
// gives its share back at once.
func TestShare(t *testing.T) {
	inBubble(t, func(w *world) {
		w.receives("good", receiver{takes: 200 * time.Millisecond})
		for i := range 40 {
			w.set(fmt.Sprint("c", i), "", "good")
			w.enqueue(fmt.Sprint("c", i), "e", 120)
		}
		first := w.start(queue.Options{Clients: 64})
		time.Sleep(5 * time.Second)
		second := w.start(queue.Options{Clients: 64})
		time.Sleep(10 * time.Second)
		if n := second.Figures().Held; n < 8 || n > 32 { // which one a client belongs to is chance
			t.Errorf("the second process has %d of 40 clients", n)
		}
		second.end()
		time.Sleep(time.Second)
		if n := first.Figures().Held; n != 40 {
			t.Errorf("the first process has %d of 40 clients", n)
		}
		t.Log(w.within(40 * time.Second))
		first.end()
	})
}

// TestFailing: a webhook that fails keeps nothing from another one on its host, and what waits for it
// goes out once it's set to a place that works.
func TestFailing(t *testing.T) {
	inBubble(t, func(w *world) {
		w.set("acme", "", "bad")
		w.set("acme", "good", "host")
		w.receives("bad", receiver{takes: 5 * time.Millisecond, fails: line.Failure})
		p := w.start(queue.Options{})
		defer p.end()
		w.enqueue("acme", "e", 200)
		time.Sleep(30 * time.Second)
		w.enqueue("acme", "good", 20)
		time.Sleep(time.Second)
		if n := len(w.left()); n != 200 {
			t.Fatalf("%d are left, want the 200 that fail", n)
		}
		w.set("acme", "", "new")
		p.Changed("acme", "")
		t.Log(w.within(5 * time.Second))
	})
}

// TestSetWhileUnmarked: an override that another process sets just before this one removes its mark gets
// what waits at once.
func TestSetWhileUnmarked(t *testing.T) {
	inBubble(t, func(w *world) {
		w.set("acme", "", "bad")
		w.receives("bad", receiver{takes: 5 * time.Millisecond, fails: line.Failure})
		p := w.start(queue.Options{})
		defer p.end()
		w.enqueue("acme", "e", 20)
		time.Sleep(time.Minute)
		w.set("acme", "e", "bad")
		p.Changed("acme", "e")
		time.Sleep(15900 * time.Millisecond) // it's looked up for the last time after 16 seconds
		thaw := p.faults.freeze()
		time.Sleep(1500 * time.Millisecond)
		w.set("acme", "e", "good")
		other := queue.New(w.tables(w.db), sender{p}, queue.Options{})
		if err := other.Mark(w.t.Context(), "acme", "e"); err != nil {
			t.Fatal(err)
		}
		thaw()
		t.Log(w.within(5 * time.Second))
	})
}

// TestLateCommit: a notification whose transaction was open while later ones were committed goes out at
// once when it's committed.
func TestLateCommit(t *testing.T) {
	inBubble(t, func(w *world) {
		w.set("acme", "", "good")
		p := w.start(queue.Options{})
		defer p.end()
		time.Sleep(time.Second)
		// SQLite has one writer, so the gap is made by hand.
		if _, err := w.db.Exec(`INSERT INTO sqlite_sequence (name, seq) SELECT 'wh_outbox_message', 5 WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = 'wh_outbox_message')`); err != nil {
			t.Fatal(err)
		}
		w.enqueue("acme", "e", 1)
		w.within(time.Second)
		for _, wait := range []time.Duration{time.Second, 20 * time.Second, time.Minute + 5*time.Second} {
			time.Sleep(wait)
			w.sent["late"] = &sent{client: "acme", entity: "e", id: "late", committed: time.Now()}
			if _, err := w.db.Exec(`INSERT INTO wh_outbox_message (seq, client, entity, id, enqueued, content_type, body) VALUES (?, ?, ?, 'late', bubble_now(), '', 'x')`, 5-int(wait/(20*time.Second)), []byte("acme"), []byte("e")); err != nil {
				t.Fatal(err)
			}
			bound := 2 * time.Second
			if wait > time.Minute {
				bound = 2 * time.Minute
			}
			t.Log(w.within(bound))
			if _, err := w.db.Exec(`DELETE FROM wh_outbox_message WHERE id = 'late'`); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestNewsHaveTurns: of more clients than a process sends to at a time, all get their turn, and one with
// something new doesn't wait behind those with a backlog.
func TestNewsHaveTurns(t *testing.T) {
	inBubble(t, func(w *world) {
		w.receives("slow", receiver{takes: time.Second})
		for i := range 12 {
			w.set(fmt.Sprint("c", i), "", "slow")
			w.enqueue(fmt.Sprint("c", i), "e", 10)
		}
		w.set("new", "", "good")
		p := w.start(queue.Options{Clients: 4})
		defer p.end()
		for i := range 20 {
			time.Sleep(1500 * time.Millisecond)
			w.enqueue("new", "e", 1)
			start := time.Now()
			for !w.has(fmt.Sprint("m", 12*10+1+i)) {
				time.Sleep(10 * time.Millisecond)
			}
			if took := time.Since(start); took > 500*time.Millisecond {
				t.Errorf("a new notification waits for %v", took)
			}
		}
		had := make(map[string]bool)
		for _, a := range w.arrivals {
			had[w.sent[a.id].client] = true
		}
		if len(had) != 13 {
			t.Errorf("%d of 13 clients had a turn", len(had))
		}
		t.Log(w.within(3 * time.Minute))
	})
}

// TestManyMarks: what waits for overrides by the thousand goes out soon after they were set to a place
// that works, and nothing of it stays in the tables.
func TestManyMarks(t *testing.T) {
	inBubble(t, func(w *world) {
		const n = 1500
		w.limits.PerClient = 50
		w.set("acme", "", "bad")
		w.receives("bad", receiver{takes: time.Millisecond, fails: line.NoConnection})
		w.receives("good", receiver{takes: time.Millisecond})
		for i := range n {
			w.enqueue("acme", fmt.Sprint("e", i), 1)
		}
		p := w.start(queue.Options{})
		defer p.end()
		time.Sleep(2 * time.Minute)
		for i := range n {
			w.set("acme", fmt.Sprint("e", i), "good")
			p.Changed("acme", fmt.Sprint("e", i))
		}
		t.Log(w.within(time.Minute))
		time.Sleep(time.Minute)
		marks := 0
		if err := w.db.QueryRow(`SELECT COUNT(*) FROM wh_outbox_mark`).Scan(&marks); err != nil || marks > 0 {
			t.Errorf("%d marks are left, %v", marks, err)
		}
	})
}

// TestLoad: while outcomes can't be written, clients with a backlog start nothing beyond a bound. Then they
// go on.
func TestLoad(t *testing.T) {
	inBubble(t, func(w *world) {
		w.mayRepeat = true
		for i := range 30 {
			name := fmt.Sprint("c", i)
			w.set(name, "", "good"+name)
			for e := range 10 {
				w.enqueue(name, fmt.Sprint("e", e), 10)
			}
		}
		p := w.start(queue.Options{Clients: 64})
		defer p.end()
		for len(w.left()) > 2800 {
			time.Sleep(time.Millisecond)
		}
		before := w.arrived()
		thaw := p.faults.freeze()
		time.Sleep(2 * time.Second)
		// Those under way, up to the bound, one more for each client, and the window in which one that has
		// just written may start.
		if n := w.arrived() - before; n > 128+64+30 {
			t.Errorf("%d attempts without a write", n)
		}
		thaw()
		t.Log(w.within(30 * time.Second))
	})
}
