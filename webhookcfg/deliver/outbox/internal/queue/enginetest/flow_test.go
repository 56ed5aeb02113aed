package enginetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/deliver/outbox"
)

// TestBacklogUsesAllSlots: a healthy receiver gets a backlog as fast as its slots allow, each once.
func TestBacklogUsesAllSlots(t *testing.T) {
	inSite(t, func(s *site) {
		const n, takes = 300, 50 * time.Millisecond
		host := s.peer(0, &peer{takes: takes})
		s.set("a", "", host)
		s.enqueueEach("a", "m", n)
		s.run(outbox.Options{}, deliver.Options{})
		took, ideal := s.awaitEnds(n, time.Minute), takes*n/4
		s.t.Logf("%.2f of the ideal %v", float64(took)/float64(ideal), ideal)
		if took > ideal*105/100+100*time.Millisecond || s.count(every) != n || s.most[host] > 4 {
			s.t.Errorf("%d requests in %v, want %d in %v; %d at a time", s.count(every), took, n, ideal, s.most[host])
		}
	})
}

// TestFailuresCostNoSlots: while one attempt in five fails, the others go on as fast as before.
func TestFailuresCostNoSlots(t *testing.T) {
	inSite(t, func(s *site) {
		const n, takes = 300, 50 * time.Millisecond
		random := rand.New(rand.NewPCG(1, 2))
		s.set("a", "", s.peer(0, &peer{takes: takes, respond: func(request) int {
			if random.IntN(5) == 0 {
				return 500
			}
			return 204
		}}))
		s.enqueueEach("a", "m", n)
		s.run(outbox.Options{}, deliver.Options{})
		took := s.await("three in four", time.Minute, func() bool { return s.deliveries() >= n*3/4 })
		share := float64(takes*time.Duration(s.count(every))/4) / float64(took)
		s.t.Logf("share %.3f", share)
		if share < 0.95 {
			s.t.Errorf("share of the slots: %.3f, want 0.95", share)
		}
	})
}

// TestOrder: while nothing fails, the notifications of an entity arrive one after another, in the order
// in which they were enqueued, also if there are more than fit into memory.
func TestOrder(t *testing.T) {
	inSite(t, func(s *site) {
		const n = 600
		s.set("a", "", s.peer(0, &peer{takes: 10 * time.Millisecond}))
		s.set("a", "e1", s.peer(1, &peer{takes: time.Millisecond}))
		s.run(outbox.Options{}, deliver.Options{})
		want := make(map[string][]string)
		for page := range n / 200 {
			var ids []string
			for i := range 200 {
				entity := fmt.Sprint("e", i*i%7)
				id := fmt.Sprint(entity, "-", page*200+i)
				want[entity] = append(want[entity], id)
				ids = append(ids, id)
			}
			s.enqueueAll("a", ids, func(id string) string { entity, _, _ := strings.Cut(id, "-"); return entity })
			time.Sleep(300 * time.Millisecond)
		}
		s.awaitEnds(n, time.Minute)
		got := make(map[string][]string)
		for _, r := range s.all(every) {
			entity, _, _ := strings.Cut(r.id, "-")
			got[entity] = append(got[entity], r.id)
		}
		for entity := range want {
			if !slices.Equal(got[entity], want[entity]) {
				s.t.Errorf("the %d notifications of %s arrived in another order: %v", len(want[entity]), entity, got[entity])
			}
		}
	})
}

// TestEntitiesDontWait: an entity with many notifications, which go one after another, doesn't keep
// those of other entities from slots that are free.
func TestEntitiesDontWait(t *testing.T) {
	inSite(t, func(s *site) {
		s.set("a", "", s.peer(0, &peer{takes: 50 * time.Millisecond}))
		s.run(outbox.Options{}, deliver.Options{})
		var ids []string
		for i := range 300 {
			ids = append(ids, fmt.Sprint("busy", i))
		}
		s.enqueue("a", "busy", ids...)
		s.enqueueEach("a", "other", 3)
		s.t.Log(s.awaitRequests(3, time.Second, named("other")))
	})
}

// TestAskedPause: a receiver that asks for a pause on one path of a host gets it, and what's for another
// path there is sent at once.
func TestAskedPause(t *testing.T) {
	inSite(t, func(s *site) {
		host := s.peer(0, &peer{asks: 10 * time.Minute, respond: func(r request) int {
			if r.path == "/busy" {
				return 429
			}
			return 204
		}})
		s.set("a", "", host+"/good")
		s.set("a", "busy", host+"/busy")
		s.run(outbox.Options{}, deliver.Options{})
		s.enqueue("a", "busy", "busy0", "busy1", "busy2")
		time.Sleep(time.Second)
		for i := range 9 {
			s.enqueue("a", "any", fmt.Sprint("good", i))
			s.await("a delivery", time.Second, func() bool { return s.deliveries() == i+1 })
			time.Sleep(time.Minute)
		}
		if n := s.count(named("busy")); n != 1 {
			t.Errorf("%d requests in the pause, want 1", n)
		}
		time.Sleep(2 * time.Minute)
		if n := s.count(named("busy")); n != 2 {
			t.Errorf("%d requests, want another one after the pause", n)
		}
	})
}

// TestSharedHost: of two webhooks of a client on one host, one always responds with an error. The other
// one gets its notifications at once, however many of the first one's wait.
func TestSharedHost(t *testing.T) {
	t.Parallel()
	for _, ahead := range []int{4, 20, 200} {
		for _, isBase := range []bool{true, false} {
			t.Run(fmt.Sprint(ahead, " ahead, of the base: ", isBase), func(t *testing.T) {
				t.Parallel()
				bubble(t, func(t *testing.T, s *site) {
					host := s.peer(0, &peer{takes: 5 * time.Millisecond, respond: func(r request) int {
						if r.path == "/bad" {
							return 404
						}
						return 204
					}})
					bad, good := "", "good"
					if !isBase {
						bad, good = "bad", ""
					}
					if isBase { // which is set first, since that removes overrides
						s.set("a", bad, host+"/bad")
						s.set("a", good, host+"/good")
						bad = "any"
					} else {
						s.set("a", good, host+"/good")
						s.set("a", bad, host+"/bad")
						good = "any"
					}
					s.run(outbox.Options{}, deliver.Options{})
					var ids []string
					for i := range ahead {
						ids = append(ids, fmt.Sprint("bad", i))
					}
					s.enqueue("a", bad, ids...)
					time.Sleep(15 * time.Second)
					ids = nil
					for i := range 20 {
						ids = append(ids, fmt.Sprint("good", i))
					}
					s.enqueue("a", good, ids...)
					s.await("20 deliveries", time.Second, func() bool { return s.deliveries() == 20 })
					if n := s.count(named("bad")); n > 20 {
						t.Errorf("%d requests to the one that fails", n)
					}
				})
			})
		}
	}
}

// TestHostWithoutConnection: a host that nobody can connect to pauses for all webhooks there, and for no
// others. Once somebody can connect, what waits goes out.
func TestHostWithoutConnection(t *testing.T) {
	inSite(t, func(s *site) {
		down := &peer{refuses: true}
		host := s.peer(0, down)
		s.set("a", "", host+"/1")
		s.set("a", "e", host+"/2")
		s.set("a", "other", s.peer(1, &peer{}))
		s.run(outbox.Options{Schedule: deliver.Schedule{time.Second, time.Second, time.Second, time.Second, time.Second, time.Second, time.Second, time.Second}}, deliver.Options{})
		s.enqueueEach("a", "m", 20)
		s.enqueue("a", "e", "e1", "e2")
		time.Sleep(7 * time.Second)
		s.enqueue("a", "other", "other")
		s.awaitRequests(1, time.Second, named("other"))
		stats, err := s.box.ClientStats(s.t.Context(), "a")
		if err != nil || len(stats.Pauses) == 0 || stats.Pauses[0].Reason != "unreachable" {
			s.t.Errorf("%+v, %v", stats, err)
		}
		s.change(func() { down.refuses = false })
		s.awaitEnds(23, 30*time.Second)
	})
}

// TestHangingReceiversDelayNobody: clients with many receivers that hang, more than they have slots for,
// delay neither other clients nor their own receivers that have responded before.
func TestHangingReceiversDelayNobody(t *testing.T) {
	inSite(t, func(s *site) {
		const clients, hosts, small = 4, 20, 32
		ok := s.peer(0, &peer{takes: 2 * time.Millisecond})
		for c := range clients {
			s.set(fmt.Sprint("good", c), "", ok)
			s.set(fmt.Sprint("bad", c), "", ok)
			s.enqueue(fmt.Sprint("bad", c), "own", fmt.Sprint("first", c))
		}
		n := s.run(outbox.Options{}, deliver.Options{})
		s.awaitEnds(clients, time.Second)
		for c := range clients {
			client := fmt.Sprint("bad", c)
			for h := range hosts {
				entity := fmt.Sprint("e", h)
				s.set(client, entity, s.peer(100+c*hosts+h, &peer{respond: does(0)}))
				n.changed(client, entity)
				name := fmt.Sprint("h", c, "-", h, "-")
				s.enqueue(client, entity, name+"0", name+"1", name+"2")
			}
		}
		time.Sleep(3 * time.Second)
		sent := make(map[string]time.Duration)
		for i := range small {
			for _, to := range []struct{ client, entity, id string }{{fmt.Sprint("good", i%clients), "e", fmt.Sprint("g", i)}, {fmt.Sprint("bad", i%clients), "own", fmt.Sprint("o", i)}} {
				sent[to.id] = time.Since(s.start)
				s.enqueue(to.client, to.entity, to.id)
			}
			time.Sleep(50 * time.Millisecond)
		}
		time.Sleep(time.Second)
		took := s.took(sent)
		s.t.Logf("p50 %v, p99 %v", took[len(took)/2], took[len(took)*99/100])
		if len(took) != 2*small || took[2*small*99/100] > 300*time.Millisecond {
			s.t.Errorf("%d of %d arrived, the last after %v", len(took), 2*small, took[len(took)-1])
		}
	})
}

// TestManyBacklogs: the backlogs of many clients go out side by side, and a new client's notification
// doesn't wait for them.
func TestManyBacklogs(t *testing.T) {
	inSite(t, func(s *site) {
		const clients, each, takes = 10, 40, 200 * time.Millisecond
		for c := range clients {
			client := fmt.Sprint("c", c)
			s.set(client, "", s.peer(c, &peer{takes: takes}))
			s.enqueueEach(client, client+"-", each)
		}
		s.run(outbox.Options{}, deliver.Options{})
		time.Sleep(time.Second)
		s.set("new", "", s.peer(500, &peer{}))
		s.enqueue("new", "e", "new")
		s.awaitRequests(1, 200*time.Millisecond, named("new"))
		s.awaitEnds(clients*each+1, time.Minute)
		took, ideal := time.Since(s.start), takes*each/4
		s.t.Logf("%.2f of the ideal %v", float64(took)/float64(ideal), ideal)
		if took > ideal*12/10 {
			s.t.Errorf("the last after %v, want %v", took, ideal)
		}
	})
}

// TestBurstDelaysNobody: a client that enqueues many at once for a receiver that fails delays neither
// another client nor its own other receiver.
func TestBurstDelaysNobody(t *testing.T) {
	inSite(t, func(s *site) {
		s.set("a", "", s.peer(0, &peer{takes: 10 * time.Millisecond, respond: does(500)}))
		s.set("a", "other", s.peer(1, &peer{}))
		s.set("b", "", s.peer(2, &peer{}))
		s.enqueueEach("a", "m", 1000)
		s.run(outbox.Options{}, deliver.Options{})
		time.Sleep(100 * time.Millisecond)
		s.enqueue("b", "e", "b")
		s.enqueue("a", "other", "other")
		s.t.Log("other client:", s.awaitRequests(1, 200*time.Millisecond, named("b")))
		s.t.Log("other receiver:", s.awaitRequests(1, 2*time.Second, named("other")))
	})
}

// TestDeadReceiver: a large backlog for a receiver that's dead costs one attempt for each pause and few
// statements, and delays neither the client's other receiver nor other clients.
func TestDeadReceiver(t *testing.T) {
	inSite(t, func(s *site) {
		s.set("a", "", s.peer(0, &peer{respond: does(500)}))
		s.enqueueEach("a", "m", 300)
		n := s.run(outbox.Options{}, deliver.Options{MaxPause: 20 * time.Second})
		time.Sleep(40 * time.Second) // the pauses have grown
		isLater, calls := s.since(), n.faults.calls.Load()
		time.Sleep(time.Minute)
		attempts, polls := s.count(isLater), int64(time.Minute/(140*time.Millisecond))
		s.t.Logf("in a minute: %d attempts, %d statements, about %d of them polls", attempts, n.faults.calls.Load()-calls, polls)
		if attempts < 2 || attempts > 4 || n.faults.calls.Load()-calls > polls+300 {
			s.t.Errorf("in a minute: %d attempts, %d statements", attempts, n.faults.calls.Load()-calls)
		}
		s.set("b", "", s.peer(2, &peer{}))
		s.set("a", "other", s.peer(1, &peer{}))
		n.changed("a", "other")
		s.enqueue("a", "other", "other")
		s.enqueue("b", "e", "b")
		s.awaitRequests(1, time.Second, named("b"))
		s.awaitRequests(1, time.Second, named("other"))
	})
}

// TestRecovery: once a receiver works again, what waited goes out as fast as its slots allow, from the
// end of the pause on, although nobody sets anything.
func TestRecovery(t *testing.T) {
	inSite(t, func(s *site) {
		const n, takes, outage = 300, 50 * time.Millisecond, 30 * time.Second
		s.set("a", "", s.peer(0, &peer{takes: takes, respond: func(r request) int {
			if r.at < outage {
				return 503
			}
			return 204
		}}))
		s.enqueueEach("a", "m", n)
		s.run(outbox.Options{}, deliver.Options{MaxPause: 20 * time.Second})
		time.Sleep(outage)
		first := s.awaitEnds(1, 21*time.Second)
		last, ideal := s.awaitEnds(n-15, time.Minute), takes*n/4 // those that failed wait for their retry
		s.t.Logf("first %v after the repair, the others within %.2f of the ideal %v", first, float64(last)/float64(ideal), ideal)
		if last > ideal*12/10 {
			s.t.Errorf("the others within %v, want %v", last, ideal*12/10)
		}
	})
}

// TestManyHosts: a client with hundreds of receivers, a tenth of which hang, gets the others served, and
// never has more requests under way than it may.
func TestManyHosts(t *testing.T) {
	inSite(t, func(s *site) {
		const hosts = 200
		most, underWay := 0, 0
		respond := func(status int, takes time.Duration) func(request) int {
			return func(request) int {
				underWay++
				most = max(most, underWay)
				time.AfterFunc(takes, func() { s.change(func() { underWay-- }) })
				return status
			}
		}
		for h := range hosts {
			p, id := &peer{takes: 20 * time.Millisecond, respond: respond(204, 20*time.Millisecond-time.Microsecond)}, "good"
			if h%10 == 0 {
				p, id = &peer{respond: respond(0, 15*time.Second-time.Millisecond)}, "bad"
			}
			s.set("a", fmt.Sprint("e", h), s.peer(100+h, p))
			s.enqueue("a", fmt.Sprint("e", h), fmt.Sprint(id, h))
		}
		s.run(outbox.Options{}, deliver.Options{})
		// Each of those that hang holds a slot of 8 for 15 seconds.
		s.t.Log(s.awaitRequests(hosts*9/10, 45*time.Second, named("good")))
		if most > 16 {
			s.t.Errorf("%d requests at a time", most)
		}
	})
}
