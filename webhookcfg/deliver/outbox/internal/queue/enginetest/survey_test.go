package enginetest

import (
	"testing"
	"time"

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
