package enginetest

import (
	"fmt"
	"testing"
	"time"

	"example.com/go-webhookcfg/webhookcfg/deliver/outbox/internal/line"
	"example.com/go-webhookcfg/webhookcfg/deliver/outbox/internal/queue"
)

// TestSurveyFindsRests: a client whose line says that there's nothing to do, although something waits in a group
// of a webhook, is found within about a minute.
func TestSurveyFindsRests(t *testing.T) {
	inBubble(t, func(w *world) {
		w.set("acme", "", "good")
		p := w.start(queue.Options{})
		defer p.end()
		w.enqueue("acme", "e", 1)
		w.within(time.Second)
		time.Sleep(20 * time.Second) // the line is given back
		if _, err := w.db.Exec(`UPDATE wh_outbox_message SET state = 0, grp = 4001, due = bubble_now(), attempts = 1`); err != nil {
			t.Fatal(err)
		}
		w.mu.Lock()
		w.mayRepeat = true
		for _, s := range w.sent {
			s.ended, s.committed = "", time.Now()
		}
		w.mu.Unlock()
		t.Log(w.within(2 * time.Minute))
	})
}

// TestSurveyOfHeldLines: a notification that was committed more than a minute after later ones goes out within
// about another minute, if its client's line is busy with retries all the time, too.
func TestSurveyOfHeldLines(t *testing.T) {
	inBubble(t, func(w *world) {
		w.limits.MaxPause = 3 * time.Second
		w.set("acme", "", "bad")
		w.set("acme", "good", "good")
		w.receives("bad", receiver{takes: 5 * time.Millisecond, fails: line.Failure})
		if _, err := w.db.Exec(`INSERT INTO sqlite_sequence (name, seq) VALUES ('wh_outbox_message', 5)`); err != nil {
			t.Fatal(err)
		}
		p := w.start(queue.Options{})
		defer p.end()
		for i := range 60 {
			w.enqueue("acme", fmt.Sprint("e", i), 1)
		}
		time.Sleep(65 * time.Second)
		w.mu.Lock()
		w.sent["late"] = &sent{client: "acme", entity: "good", id: "late", committed: time.Now()}
		w.mu.Unlock()
		if _, err := w.db.Exec(`INSERT INTO wh_outbox_message (seq, client, entity, id, enqueued, content_type, body) VALUES (4, ?, ?, 'late', bubble_now(), '', 'x')`, []byte("acme"), []byte("good")); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		for !w.has("late") {
			if time.Sleep(100 * time.Millisecond); time.Since(start) > 2*time.Minute {
				t.Fatal("it waits for more than two minutes")
			}
			if p.Figures().Held == 0 {
				t.Fatal("the line isn't held")
			}
		}
		t.Log(time.Since(start))
	})
}
