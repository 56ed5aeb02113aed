package enginetest

import (
	"fmt"
	"testing"
	"time"

	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/deliver/outbox"
)

// TestTurns: if more clients have something to send than a process sends to at a time, they all get
// their turns, also if each enqueues more than its receiver takes, whether processes are told of commits
// or not, and whoever sets a webhook. A small client waits for one round.
func TestTurns(t *testing.T) {
	t.Parallel()
	const clients, seconds = 8, 45
	for name, tt := range map[string]struct {
		processes int
		during    func(n *node, client string)
	}{
		"found": {1, func(*node, string) {}},
		"told":  {2, func(n *node, client string) { n.Committed(client) }},
		"set": {1, func(n *node, client string) {
			if client == "c0" || client == "c1" { // again and again
				n.changed(client, "")
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, s *site) {
				for c := range clients {
					s.set(fmt.Sprint("c", c), "", s.peer(c, &peer{takes: 400 * time.Millisecond}))
				}
				s.set("small", "", s.peer(clients, &peer{}))
				var n *node
				for range tt.processes {
					n = s.run(outbox.Options{Clients: 2 / tt.processes}, deliver.Options{})
				}
				sent := make(map[string]time.Duration)
				for tick := range seconds * 2 {
					for c := range clients {
						client := fmt.Sprint("c", c)
						s.enqueueEach(client, fmt.Sprint(client, "-", tick, "-"), 10) // it takes five
						tt.during(n, client)
					}
					if tick == 20 {
						sent["small"] = time.Since(s.start)
						s.enqueue("small", "e", "small")
						tt.during(n, "small")
					}
					time.Sleep(500 * time.Millisecond)
				}
				const share = seconds * 10 * 2 / clients // two of the clients send 10 a second
				var got []int
				for c := range clients {
					got = append(got, s.count(named(fmt.Sprint("c", c, "-"))))
					if got[c] < share/2 {
						t.Errorf("client %d got %d, and its share is %d", c, got[c], share)
					}
				}
				took := s.took(sent)
				t.Logf("the clients got %v of a share of %d; the small one waited %v", got, share, took)
				if round := clients / 2 * 6 * time.Second; len(took) == 0 || took[0] > round {
					t.Errorf("the small client's took %v, want %v", took, round)
				}
			})
		})
	}
}

// TestBacklogsYield: clients with a backlog let another one have a turn that has something new.
func TestBacklogsYield(t *testing.T) {
	inSite(t, func(s *site) {
		s.run(outbox.Options{Clients: 2}, deliver.Options{})
		time.Sleep(time.Second)
		for c := range 2 {
			client := fmt.Sprint("c", c)
			s.set(client, "", s.peer(c, &peer{takes: 400 * time.Millisecond}))
			s.enqueueEach(client, client+"-", 400)
		}
		s.set("small", "", s.peer(2, &peer{}))
		time.Sleep(time.Second)
		s.enqueue("small", "e", "small")
		s.t.Log(s.awaitRequests(1, 6*time.Second, named("small")))
	})
}

// TestNewsBeforeDead: a client with something new doesn't wait behind more clients than the process
// sends to at a time whose receivers are dead or hang.
func TestNewsBeforeDead(t *testing.T) {
	t.Parallel()
	for name, status := range map[string]int{"dead": 500, "hanging": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "hanging" {
			}
			bubble(t, func(t *testing.T, s *site) {
				for c := range 12 {
					client := fmt.Sprint("bad", c)
					s.set(client, "", s.peer(c, &peer{respond: does(status)}))
					s.enqueueEach(client, client+"-", 30)
				}
				s.run(outbox.Options{Clients: 4}, deliver.Options{})
				time.Sleep(20 * time.Second)
				s.set("new", "", s.peer(100, &peer{}))
				for i := range 4 {
					s.enqueue("new", "e", fmt.Sprint("new", i))
					t.Log(s.awaitRequests(i+1, 6*time.Second, named("new")))
					time.Sleep(3 * time.Second)
				}
			})
		})
	}
}

// TestFirstContact: many more clients than the process sends to at a time get their first
// notification soon, although it takes many turns.
func TestFirstContact(t *testing.T) {
	inSite(t, func(s *site) {
		const clients = 150
		ok := s.peer(0, &peer{takes: 50 * time.Millisecond})
		for c := range clients {
			client := fmt.Sprint("c", c)
			s.set(client, "", ok)
			s.enqueue(client, "e", client)
		}
		s.run(outbox.Options{Clients: 24}, deliver.Options{})
		s.t.Log(s.awaitEnds(clients, 6*time.Second))
	})
}

// TestTurnWhileHanging: a client whose turn is over lets others have it although one of its own
// requests hangs, and goes on once they're done.
func TestTurnWhileHanging(t *testing.T) {
	inSite(t, func(s *site) {
		s.set("a", "", s.peer(0, &peer{takes: 50 * time.Millisecond}))
		s.set("a", "hangs", s.peer(1, &peer{respond: does(0)}))
		s.set("b", "", s.peer(2, &peer{}))
		s.run(outbox.Options{Clients: 1}, deliver.Options{})
		s.enqueueEach("a", "m", 1200)
		time.Sleep(4 * time.Second)
		s.enqueue("a", "hangs", "h")
		s.enqueue("b", "e", "b")
		s.awaitRequests(1, 2500*time.Millisecond, named("b"))
		time.Sleep(8 * time.Second)
		if got, want := s.count(named("m")), int(time.Since(s.start)/(50*time.Millisecond))*4; got < want*8/10 {
			s.t.Errorf("%d arrived, want %d if nothing but slots is missing", got, want)
		}
	})
}
