package outbox

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/webhookcfg/deliver"
)

// large makes the tests of flow use the sizes that the design speaks of.
var large = flag.Bool("large", false, "test flow with the full sizes, which takes minutes")

// sized returns the full size with -large, and otherwise the small one.
func sized(small, full int) int {
	if *large {
		return full
	}
	return small
}

// responding returns a receiver whose status is decided at the time of each request, after a
// time.
func (w *world) responding(takes time.Duration, status func(at time.Duration) int) *peer {
	return &peer{takes: takes, respond: func(id string) int {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.attempts[id]++
		s := status(time.Since(w.start))
		if s == 204 {
			w.delivered++
			w.ok[id]++
		}
		return s
	}}
}

// enqueueAll enqueues notifications of a client, each of another entity.
func (w *world) enqueueAll(client string, n int) {
	for i := range n {
		w.db.enqueue(client, fmt.Sprint("e", i), fmt.Sprint(client, "-", i))
	}
}

// awaitDelivered waits until n notifications have been delivered, and returns when.
func (w *world) awaitDelivered(n int, within time.Duration) (at time.Duration) {
	w.t.Helper()
	for deadline := time.Now().Add(within); w.deliveries() < n; time.Sleep(max(time.Millisecond, within/1_000_000)) {
		if time.Now().After(deadline) {
			w.t.Fatalf("%d of %d delivered within %v", w.deliveries(), n, within)
		}
	}
	return time.Since(w.start)
}

// TestRecovery: once a receiver works again, what waited goes out as fast as its slots allow,
// from the end of the pause on, although nobody sets anything.
func TestRecovery(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const takes, outage = 50 * time.Millisecond, time.Minute
		n := sized(1500, 20_000)
		w := newWorld(t)
		w.set("a", "", w.host(1, w.responding(takes, func(at time.Duration) int {
			if at < outage {
				return 503
			}
			return 204
		})))
		w.enqueueAll("a", n)
		p := w.run(Options{}, deliver.Options{MaxPause: 30 * time.Second})
		defer p.stop()
		first := w.awaitDelivered(1, time.Hour)
		last := w.awaitDelivered(n-10, time.Hour) // those that failed wait for their retry
		ideal := takes * time.Duration(n) / 4
		t.Logf("first %v after the repair, the others within %.2f of the ideal %v", first-outage, float64(last-first)/float64(ideal), ideal)
		if first-outage > 31*time.Second || last-first > ideal*12/10 {
			t.Errorf("first %v after the repair, the others within %v, want %v", first-outage, last-first, ideal*12/10)
		}
	})
}

// TestFlappingReceiver: a receiver that fails seven times of ten, and then is healthy for good,
// gets everything soon after. Each attempt is the schedule's: nobody is given up because the
// receiver seemed to recover again and again.
func TestFlappingReceiver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const takes, flaps = 50 * time.Millisecond, 9 * time.Minute
		n := sized(100, 2000)
		random := rand.New(rand.NewPCG(3, 4))
		w := newWorld(t)
		w.set("a", "", w.host(1, w.responding(takes, func(at time.Duration) int {
			if at < flaps && random.IntN(10) < 7 {
				return 503
			}
			return 204
		})))
		w.enqueueAll("a", n)
		var ends []End
		p := w.run(Options{OnEnd: func(e End) { ends = append(ends, e) }}, deliver.Options{MaxPause: 30 * time.Second})
		defer p.stop()
		time.Sleep(flaps)
		before := w.deliveries()
		time.Sleep(time.Minute)
		soon := w.deliveries()
		w.awaitDelivered(n, 100*time.Hour)
		p.stop()
		most := 0
		w.mu.Lock()
		for _, attempts := range w.attempts {
			most = max(most, attempts)
		}
		w.mu.Unlock()
		t.Logf("%d delivered before it's healthy, %d a minute later, at most %d attempts", before, soon, most)
		if most > 4 { // at once, and after 5 s, 5 and 30 minutes
			t.Errorf("a notification was attempted %d times, and the schedule has 4 attempts in these ten minutes", most)
		}
		if soon-before == 0 && before < n {
			t.Error("nothing was delivered within a minute after the receiver was healthy for good")
		}
		if i := slices.IndexFunc(ends, func(e End) bool { return e.State != Delivered }); i >= 0 || len(ends) != n {
			t.Errorf("%d ended: %+v", len(ends), ends[max(i, 0)])
		}
	})
}

// TestFewClientsHang: thirteen clients with forty hosts each that hang, more requests than they
// may have, don't delay small clients.
func TestFewClientsHang(t *testing.T) {
	// Not parallel: with the race detector, so many connections take 200 MB.
	synctest.Test(t, func(t *testing.T) {
		const clients, hosts, small = 13, 40, 200
		each := sized(5, 20)
		w := newWorld(t)
		hang := &peer{respond: func(string) int { return 0 }}
		for c := range clients {
			for h := range hosts {
				client, entity := fmt.Sprint("bad", c), fmt.Sprint("e", h)
				w.set(client, entity, w.host(1000+c*hosts+h, hang))
				for i := range each {
					w.db.enqueue(client, entity, fmt.Sprint("h-", c, "-", h, "-", i))
				}
			}
		}
		p := w.run(Options{}, deliver.Options{})
		defer p.stop()
		time.Sleep(5 * time.Second)
		ok := w.host(1, &peer{takes: 2 * time.Millisecond})
		sent := make(map[string]time.Duration)
		for i := range small {
			client, id := fmt.Sprint("good", i%20), fmt.Sprint("g-", i)
			w.set(client, "", ok)
			sent[id] = time.Since(w.start)
			w.db.enqueue(client, "e", id)
			time.Sleep(50 * time.Millisecond)
		}
		time.Sleep(5 * time.Second)
		took := w.since(sent)
		if len(took) != small {
			t.Fatalf("%d of %d arrived", len(took), small)
		}
		t.Logf("p50 %v, p99 %v", took[small/2], took[small*99/100])
		if took[small*99/100] > 300*time.Millisecond {
			t.Errorf("p99 %v", took[small*99/100])
		}
	})
}

// TestDeadReceiver: a large backlog for a receiver that is dead costs one attempt and one look past
// it for each pause, and delays neither the client's other receiver nor other clients.
func TestDeadReceiver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := sized(600, 20_000)
		w := newWorld(t)
		w.set("a", "", w.host(1, w.responding(time.Millisecond, func(time.Duration) int { return 500 })))
		w.enqueueAll("a", n)
		p := w.run(Options{}, deliver.Options{MaxPause: 5 * time.Minute})
		defer p.stop()
		time.Sleep(10 * time.Minute) // the pauses have grown
		attempts, calls := w.arrived(), w.db.counted()
		time.Sleep(30 * time.Minute)
		after := w.db.counted()
		reads := after["waiting"] + after["fresh"] - calls["waiting"] - calls["fresh"]
		t.Logf("in half an hour: %d attempts, %d reads, %d writes", w.arrived()-attempts, reads, after["write"]-calls["write"])
		// At the end of a pause, the line looks once past what waits for the receiver.
		if got := w.arrived() - attempts; got > 10 || reads > 2*(got+2)*(n/widePage+8) {
			t.Errorf("%d attempts and %d reads in half an hour, want about one a pause, and to look past %d for each", got, reads, n)
		}
		w.set("a", "other", w.host(2, &peer{takes: time.Millisecond}))
		w.set("b", "", w.host(3, &peer{takes: time.Millisecond}))
		sent := map[string]time.Duration{"a": time.Since(w.start), "b": time.Since(w.start)}
		w.db.enqueue("a", "other", "a")
		w.db.enqueue("b", "e", "b")
		time.Sleep(10 * time.Second)
		if took := w.since(sent); len(took) != 2 || took[1] > time.Second {
			t.Errorf("other notifications took %v", took)
		}
	})
}

// TestFirstContact: many clients that get their first notification at once all get it soon, with
// far fewer turns than clients.
func TestFirstContact(t *testing.T) {
	// Not parallel: with the race detector, so many connections take 200 MB.
	synctest.Test(t, func(t *testing.T) {
		clients := sized(600, 5000)
		w := newWorld(t)
		ok := w.host(1, &peer{takes: 50 * time.Millisecond})
		for c := range clients {
			client := fmt.Sprint("c", c)
			w.set(client, "", ok)
			w.db.enqueue(client, "e", fmt.Sprint("m", c))
		}
		p := w.run(Options{}, deliver.Options{})
		defer p.stop()
		_, last := w.await(clients, time.Hour)
		ideal := time.Duration(clients/defaultClients+1) * 50 * time.Millisecond
		t.Logf("the last one after %v, %v if 256 clients at a time cost nothing else", last, ideal)
		if last > 10*ideal+5*time.Second {
			t.Errorf("the last one after %v", last)
		}
	})
}

// TestManyHosts: a client with thousands of receivers, a tenth of which hang, gets the others
// served, and never has more requests under way than it may.
func TestManyHosts(t *testing.T) {
	// Not parallel: with the race detector, so many connections take 200 MB.
	synctest.Test(t, func(t *testing.T) {
		hosts := sized(400, 5000)
		w := newWorld(t)
		hang := &peer{respond: func(string) int { return 0 }}
		ok := &peer{takes: 20 * time.Millisecond}
		good := make(map[string]time.Duration)
		for h := range hosts {
			entity, p := fmt.Sprint("e", h), ok
			if h%10 == 0 {
				p = hang
			} else {
				good[fmt.Sprint("m", h)] = 0
			}
			w.set("a", entity, w.host(1000+h, p))
			w.db.enqueue("a", entity, fmt.Sprint("m", h))
		}
		p := w.run(Options{}, deliver.Options{})
		defer p.stop()
		for len(w.since(good)) < len(good) {
			time.Sleep(100 * time.Millisecond)
			if time.Since(w.start) > 3*time.Hour {
				t.Fatalf("%d of %d arrived in three hours", len(w.since(good)), len(good))
			}
		}
		// Each of those that hang holds a slot of 16 for 15 seconds.
		ideal := time.Duration(hosts/10) * 15 * time.Second / 16
		t.Logf("after %v, those that hang take %v", time.Since(w.start), ideal)
		if time.Since(w.start) > 2*ideal+time.Minute {
			t.Errorf("all arrived after %v, want about %v", time.Since(w.start), ideal)
		}
	})
}

// TestReadsFailForAWhile: once reads work again, the client is given back as always.
func TestReadsFailForAWhile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.set("a", "", w.host(1, &peer{}))
		p := w.run(Options{}, deliver.Options{})
		defer p.stop()
		fails := func(fail func(call string) error) {
			w.db.mu.Lock()
			p.session.fail = fail
			w.db.mu.Unlock()
		}
		fails(func(call string) error {
			if call == "fresh" {
				return errCut
			}
			return nil
		})
		w.db.enqueue("a", "e", "m")
		time.Sleep(time.Second)
		fails(nil)
		time.Sleep(4 * time.Second)
		if w.arrived() != 1 {
			t.Error("it hasn't arrived")
		}
		time.Sleep(2 * hold)
		if p.has("a") {
			t.Error("the process still has the client")
		}
	})
}
