package enginetest

import (
	"fmt"
	"testing"
	"time"

	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/deliver/outbox"
)

// TestInvalidMessages: what can't be sent anywhere says nothing about a webhook, so the pauses of a base
// that fails stay as they are, whichever entity has it.
func TestInvalidMessages(t *testing.T) {
	inSite(t, func(s *site) {
		s.set("a", "", s.peer(0, &peer{respond: does(500)}))
		s.set("a", "own", s.peer(1, &peer{}))
		s.run(outbox.Options{}, deliver.Options{MaxBody: 100})
		s.enqueueEach("a", "first", 200)
		for i := range 5 {
			time.Sleep(12 * time.Second)
			m := outbox.Notification{Client: "a", Entity: "own", Message: deliver.Message{ID: fmt.Sprint("large", i), Body: make([]byte, 101)}}
			if err := s.box.Enqueue(s.t.Context(), s.db, m); err != nil {
				s.t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		if n := len(s.ended(func(outbox.End) bool { return true })); n != 5 {
			s.t.Errorf("%d have ended, want the 5 that are too large", n)
		}
		if n := s.count(every); n > 14 { // it pauses after five
			s.t.Errorf("%d requests to a base that fails, in a minute", n)
		}
	})
}
