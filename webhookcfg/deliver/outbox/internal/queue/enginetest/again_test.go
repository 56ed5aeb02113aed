package enginetest

import (
	"fmt"
	"testing"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/deliver/outbox"
	shown "example.com/go-webhookcfg/webhookcfg/sent" // sent is a type of this package
)

func (s *site) again(client string, what shown.Selection) {
	s.t.Helper()
	if err := s.box.SendAgain(s.t.Context(), client, what); err != nil {
		s.t.Fatal(err)
	}
}

// TestEndOfSentAgain: the host hears of the end of a notification once, although it was sent again while its
// last attempt was under way.
func TestEndOfSentAgain(t *testing.T) {
	inSite(t, func(s *site) {
		s.set("a", "", s.peer(0, &peer{takes: 3 * time.Second, respond: func(r request) int {
			if r.nth <= 2 {
				return 500
			}
			return 204
		}}))
		s.run(outbox.Options{Schedule: deliver.Schedule{time.Second}}, deliver.Options{})
		s.enqueue("a", "e", "m")
		s.awaitRequests(2, 10*time.Second, every)
		time.Sleep(time.Second)
		s.again("a", shown.Selection{ID: "m"})
		s.await("the end", 20*time.Second, func() bool { return s.waiting() == 0 })
		time.Sleep(time.Second)
		if ends := s.ended(func(outbox.End) bool { return true }); len(ends) != 1 || ends[0].State != outbox.Delivered {
			s.t.Errorf("ends %+v, want one", ends)
		}
	})
}

// TestSendAgainUnderWay: a notification that's sent again while an attempt is under way, whether that
// fails or succeeds, goes out again at once when it has ended, with a new schedule.
func TestSendAgainUnderWay(t *testing.T) {
	t.Parallel()
	for _, status := range []int{500, 204} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, s *site) {
				s.set("a", "", s.peer(0, &peer{takes: 3 * time.Second, respond: func(r request) int {
					switch r.nth {
					case 1:
						return 500
					case 2:
						return status
					}
					return 204
				}}))
				s.run(outbox.Options{Schedule: deliver.Schedule{time.Second, time.Hour, time.Hour}}, deliver.Options{})
				s.enqueue("a", "e", "m")
				s.awaitRequests(2, 10*time.Second, every)
				time.Sleep(time.Second)
				s.again("a", shown.Selection{ID: "m"}) // the second attempt is under way
				s.awaitRequests(3, 2*time.Second+200*time.Millisecond, every)
				s.await("the end", 4*time.Second, func() bool { return s.waiting() == 0 })
				n, err := s.box.Notification(t.Context(), "a", "m")
				if err != nil || n.State != "delivered" || n.Attempts != 1 {
					t.Errorf("%+v, %v", n, err)
				}
			})
		})
	}
}

// TestSendAgainFirst: hundreds that are sent again don't delay new notifications.
func TestSendAgainFirst(t *testing.T) {
	inSite(t, func(s *site) {
		const n = 900
		receiver := &peer{respond: does(413)} // given up at once
		s.set("a", "", s.peer(0, receiver))
		s.run(outbox.Options{}, deliver.Options{})
		s.enqueueEach("a", "old", n)
		s.awaitEnds(n, 10*time.Second)
		s.change(func() { receiver.takes, receiver.respond = 100*time.Millisecond, nil })
		s.again("a", shown.Selection{Scope: webhookcfg.All()})
		time.Sleep(time.Second)
		for i := range 8 {
			id := fmt.Sprint("new", i)
			s.enqueue("a", id, id)
			s.t.Log(s.awaitRequests(1, 500*time.Millisecond, named(id)))
		}
		s.awaitEnds(2*n+8, 40*time.Second)
	})
}

// TestSendAgainOnce: what clients send again at the same time, with several processes, arrives once each.
func TestSendAgainOnce(t *testing.T) {
	inSite(t, func(s *site) {
		receiver := &peer{respond: does(413)}
		host := s.peer(0, receiver)
		for c := range 3 {
			s.set(fmt.Sprint("c", c), "", host)
			s.enqueueEach(fmt.Sprint("c", c), fmt.Sprint("c", c, "-"), 200)
		}
		s.run(outbox.Options{}, deliver.Options{})
		s.run(outbox.Options{}, deliver.Options{})
		s.awaitEnds(600, 20*time.Second)
		s.change(func() { receiver.respond = nil })
		isLater := s.since()
		for c := range 3 {
			s.again(fmt.Sprint("c", c), shown.Selection{Scope: webhookcfg.All()})
		}
		s.awaitEnds(1200, 20*time.Second)
		time.Sleep(5 * time.Second)
		if got := s.count(isLater); got != 600 {
			s.t.Errorf("%d requests, want 600", got)
		}
	})
}

// TestSendAgainIsLost: what was sent again by a transaction whose response was lost goes out at once, of
// one notification and of many.
func TestSendAgainIsLost(t *testing.T) {
	for name, what := range map[string]shown.Selection{"one": {ID: "m"}, "many": {Scope: webhookcfg.All()}} {
		t.Run(name, func(t *testing.T) {
			inSite(t, func(s *site) {
				receiver := &peer{respond: does(413)}
				s.set("a", "", s.peer(0, receiver))
				s.enqueue("a", "e", "m")
				n := s.run(outbox.Options{}, deliver.Options{})
				s.awaitEnds(1, 10*time.Second)
				time.Sleep(20 * time.Second) // the line has nothing to do
				s.change(func() { receiver.respond = nil })
				n.faults.mu.Lock()
				n.faults.commit = func() (bool, error) { return true, errCut }
				n.faults.mu.Unlock()
				_ = n.SendAgain(s.t.Context(), "a", what) // its error says that it may be so
				time.Sleep(time.Second)
				n.faults.mu.Lock()
				n.faults.commit = nil
				n.faults.mu.Unlock()
				s.awaitRequests(2, 5*time.Second, every)
			})
		})
	}
}
