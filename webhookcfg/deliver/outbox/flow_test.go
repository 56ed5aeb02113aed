package outbox

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/webhookcfg/deliver"
)

// TestBacklogUsesAllSlots: a healthy receiver gets a backlog as fast as its slots allow.
func TestBacklogUsesAllSlots(t *testing.T) {
	t.Parallel()
	for _, takes := range []time.Duration{10 * time.Millisecond, 50 * time.Millisecond, 200 * time.Millisecond} {
		for _, n := range slices.Compact([]int{1000, sized(1000, 20_000)}) {
			t.Run(fmt.Sprint(n, " x ", takes), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t)
					w.set("a", "", w.host(1, &peer{takes: takes}))
					for i := range n {
						w.db.enqueue("a", fmt.Sprint("e", i), fmt.Sprint("m", i))
					}
					p := w.run(Options{}, deliver.Options{})
					defer p.stop()
					first, last := w.await(n, time.Hour)
					ideal := takes * time.Duration(n) / 4
					share := float64(ideal) / float64(last-first+takes)
					t.Logf("share %.3f, first after %v, calls %v", share, first, w.db.counted())
					if share < 0.95 {
						t.Errorf("share of the slots: %.3f, want 0.95", share)
					}
					p.stop()
					if got := w.arrived(); got != n {
						t.Errorf("%d arrivals, want %d", got, n)
					}
				})
			})
		}
	}
}

// TestFailuresCostNoSlots: while one attempt in n fails, the others go on as fast as before.
func TestFailuresCostNoSlots(t *testing.T) {
	t.Parallel()
	for _, in := range []int{20, 5} {
		t.Run(fmt.Sprint("one in ", in), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const takes = 50 * time.Millisecond
				n := sized(800, 2000)
				w := newWorld(t)
				random := rand.New(rand.NewPCG(1, 2))
				w.set("a", "", w.host(1, &peer{takes: takes, respond: func(string) int {
					w.mu.Lock()
					defer w.mu.Unlock()
					if random.IntN(in) == 0 {
						return 500
					}
					w.delivered++
					return 204
				}}))
				for i := range n {
					w.db.enqueue("a", fmt.Sprint("e", i), fmt.Sprint("m", i))
				}
				p := w.run(Options{}, deliver.Options{})
				defer p.stop()
				start := time.Now()
				for w.deliveries() < n*9/10 {
					time.Sleep(time.Millisecond)
				}
				w.mu.Lock()
				attempts := len(w.arrivals)
				w.mu.Unlock()
				share := float64(takes*time.Duration(attempts)/4) / float64(time.Since(start))
				t.Logf("share %.3f", share)
				if share < 0.95 {
					t.Errorf("share of the slots: %.3f, want 0.95", share)
				}
			})
		})
	}
}

// TestRepairedAndSetAgain: a client whose receiver failed for a while repairs it and sets its
// webhook again. What waits then leaves at once, as fast as the slots allow.
func TestRepairedAndSetAgain(t *testing.T) {
	t.Parallel()
	for _, processes := range []int{1, 3} {
		t.Run(fmt.Sprint(processes, " processes"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := sized(500, 20_000)
				const takes = 50 * time.Millisecond
				w := newWorld(t)
				healthy := false
				w.set("a", "", w.host(1, &peer{takes: takes, respond: func(string) int {
					w.mu.Lock()
					defer w.mu.Unlock()
					if !healthy {
						return 503
					}
					w.delivered++
					return 204
				}}))
				for i := range n {
					w.db.enqueue("a", fmt.Sprint("e", i), fmt.Sprint("m", i))
				}
				var nodes []*node
				for range processes {
					nodes = append(nodes, w.run(Options{}, deliver.Options{}))
				}
				defer func() {
					for _, p := range nodes {
						p.stop()
					}
				}()
				time.Sleep(61 * time.Second)
				w.mu.Lock()
				healthy = true
				failed := len(w.arrivals)
				w.mu.Unlock()
				t.Log("calls while paused:", w.db.counted())
				w.set("a", "", "93.184.0.2:80")
				set := time.Now()
				if err := nodes[len(nodes)-1].box.Wake(t.Context(), "a"); err != nil {
					t.Fatal(err)
				}
				for w.deliveries() == 0 {
					time.Sleep(time.Millisecond)
				}
				first := time.Since(set)
				for w.deliveries() < n {
					time.Sleep(time.Millisecond)
					if time.Since(set) > time.Hour {
						t.Fatalf("%d of %d delivered", w.deliveries(), n)
					}
				}
				last := time.Since(set)
				ideal := takes * time.Duration(n) / 4
				t.Log("calls:", w.db.counted())
				t.Logf("%d failures, first after %v, last after %.2f of the ideal %v", failed, first, float64(last)/float64(ideal), ideal)
				if first > time.Second || last > ideal*12/10 {
					t.Errorf("first after %v, last after %v, want a second and %v", first, last, ideal*12/10)
				}
			})
		})
	}
}

// TestHangingReceiversDelayNobody: clients with many receivers that hang don't delay other
// clients, nor their own receivers that respond.
func TestHangingReceiversDelayNobody(t *testing.T) {
	// Not parallel: with the race detector, so many connections take 200 MB.
	synctest.Test(t, func(t *testing.T) {
		clients := sized(12, 100)
		w := newWorld(t)
		hang := &peer{respond: func(string) int { return 0 }}
		for c := range clients {
			for h := range 40 {
				w.set(fmt.Sprint("bad", c), fmt.Sprint("e", h), w.host(1000+c*40+h, hang))
				for i := range 5 {
					w.db.enqueue(fmt.Sprint("bad", c), fmt.Sprint("e", h), fmt.Sprint("h-", c, "-", h, "-", i))
				}
			}
		}
		p := w.run(Options{}, deliver.Options{})
		defer p.stop()
		time.Sleep(5 * time.Second)
		ok := w.host(1, &peer{takes: 2 * time.Millisecond})
		sent := make(map[string]time.Duration)
		for i := range 200 {
			client, id := fmt.Sprint("good", i%20), fmt.Sprint("g-", i)
			w.set(client, "", ok)
			sent[id] = time.Since(w.start)
			w.db.enqueue(client, "e", id)
			time.Sleep(50 * time.Millisecond)
		}
		time.Sleep(5 * time.Second)
		took := w.since(sent)
		t.Logf("p50 %v, p99 %v", took[len(took)/2], took[len(took)*99/100])
		if len(took) != 200 || took[198] > 300*time.Millisecond {
			t.Errorf("%d of 200 arrived, p99 %v", len(took), took[len(took)*99/100])
		}
	})
}

// TestManyBacklogs: the backlogs of many clients go out side by side, and a new client's
// notification doesn't wait for them.
func TestManyBacklogs(t *testing.T) {
	// Not parallel: with the race detector, so many connections take 200 MB.
	synctest.Test(t, func(t *testing.T) {
		clients, each := sized(20, 200), sized(100, 500)
		const takes = 200 * time.Millisecond
		w := newWorld(t)
		for c := range clients {
			w.set(fmt.Sprint("c", c), "", w.host(c, &peer{takes: takes}))
			for i := range each {
				w.db.enqueue(fmt.Sprint("c", c), fmt.Sprint("e", i), fmt.Sprint("m", c, "-", i))
			}
		}
		p := w.run(Options{}, deliver.Options{})
		defer p.stop()
		time.Sleep(time.Second)
		w.set("new", "", w.host(5000, &peer{takes: time.Millisecond}))
		sent := map[string]time.Duration{"new": time.Since(w.start)}
		w.db.enqueue("new", "e", "new")
		_, last := w.await(clients*each+1, time.Hour)
		ideal := takes * time.Duration(each) / 4
		t.Logf("last after %.2f of the ideal, new after %v", float64(last)/float64(ideal), w.since(sent)[0])
		if last > ideal*12/10 || w.since(sent)[0] > 200*time.Millisecond {
			t.Errorf("last after %v, want %v; new client's after %v", last, ideal*12/10, w.since(sent)[0])
		}
	})
}

// TestBurstDelaysNobody: a client that enqueues many at once delays neither
// another client, nor its own other receiver without bound.
func TestBurstDelaysNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := sized(3000, 20_000)
		w := newWorld(t)
		w.set("a", "", w.host(1, &peer{takes: 10 * time.Millisecond, respond: func(string) int { return 500 }}))
		w.set("a", "other", w.host(2, &peer{takes: time.Millisecond}))
		w.set("b", "", w.host(3, &peer{takes: time.Millisecond}))
		for i := range n {
			w.db.enqueue("a", fmt.Sprint("e", i), fmt.Sprint("m", i))
		}
		p := w.run(Options{}, deliver.Options{})
		defer p.stop()
		time.Sleep(100 * time.Millisecond)
		sent := map[string]time.Duration{"b": time.Since(w.start), "a": time.Since(w.start)}
		w.db.enqueue("b", "e", "b")
		w.db.enqueue("a", "other", "a")
		time.Sleep(30 * time.Second)
		took := w.since(sent)
		t.Log("other client, other receiver: ", took)
		if len(took) < 2 || took[0] > 200*time.Millisecond {
			t.Errorf("took %v", took)
		}
		if *large {
			calls := w.db.counted()["waiting"]
			time.Sleep(10 * time.Minute)
			t.Log("reads in ten minutes:", w.db.counted()["waiting"]-calls)
		}
	})
}

// TestOrder: the notifications of an entity arrive in the order in which they were enqueued,
// one after another, also if there are more than fit into memory.
func TestOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := sized(1500, 3000)
		w := newWorld(t)
		w.set("a", "", w.host(1, &peer{takes: 10 * time.Millisecond}))
		w.set("a", "e1", w.host(2, &peer{takes: time.Millisecond}))
		p := w.run(Options{}, deliver.Options{})
		defer p.stop()
		want := make(map[string][]string)
		for i := range n {
			entity := fmt.Sprint("e", i*i%7)
			id := fmt.Sprint(entity, "-", i)
			want[entity] = append(want[entity], id)
			w.db.enqueue("a", entity, id)
			if i%500 == 0 {
				time.Sleep(300 * time.Millisecond)
			}
		}
		w.await(n, time.Hour)
		got := make(map[string][]string)
		for _, a := range w.all() {
			entity, _, _ := strings.Cut(a.id, "-")
			got[entity] = append(got[entity], a.id)
		}
		for entity := range want {
			if !slices.Equal(got[entity], want[entity]) {
				t.Errorf("the notifications of %s arrived in another order: %d of %d, as %v", entity, len(got[entity]), len(want[entity]), firstDifference(got[entity], want[entity]))
			}
		}
	})
}

// firstDifference returns what stands where two lists start to differ.
func firstDifference(got, want []string) []string {
	for i := range got {
		if i >= len(want) || got[i] != want[i] {
			return got[max(i-2, 0):min(i+4, len(got))]
		}
	}
	return nil
}

// TestOrderAfterATakeover: what a killed process had read goes out before what it hadn't.
func TestOrderAfterATakeover(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const n = 400
		w := newWorld(t)
		w.set("a", "", w.host(1, &peer{takes: 50 * time.Millisecond}))
		first := w.run(Options{}, deliver.Options{})
		for i := range n {
			w.db.enqueue("a", "e", fmt.Sprint("m", i))
		}
		w.await(20, time.Minute)
		first.kill()
		for i := range 50 {
			w.db.enqueue("a", "e", fmt.Sprint("m", n+i))
		}
		time.Sleep(4 * time.Second) // until the lease has ended
		second := w.run(Options{}, deliver.Options{})
		defer second.stop()
		for w.db.waitingNow() > 0 {
			time.Sleep(time.Second)
		}
		last, seen := int64(0), make(map[string]bool)
		for _, a := range w.all() {
			var i int64
			_, _ = fmt.Sscanf(a.id, "m%d", &i)
			if i < last && !seen[a.id] {
				t.Fatalf("%s arrived for the first time after m%d", a.id, last)
			}
			last, seen[a.id] = max(last, i), true
		}
	})
}

// TestTurnWhileHanging: a client whose turn is over lets others have it although one of its own
// requests hangs, and goes on once they're done.
func TestTurnWhileHanging(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.set("a", "", w.host(1, &peer{takes: 50 * time.Millisecond}))
		w.set("a", "hangs", w.host(2, &peer{respond: func(string) int { return 0 }}))
		w.set("b", "", w.host(3, &peer{}))
		p := w.run(Options{Clients: 1}, deliver.Options{})
		defer p.stop()
		w.enqueueAll("a", 2000)
		time.Sleep(4 * time.Second)
		w.db.enqueue("a", "hangs", "h")
		w.db.enqueue("b", "e", "b")
		time.Sleep(slice)
		if took := w.since(map[string]time.Duration{"b": 4 * time.Second}); len(took) != 1 || took[0] > slice/2 {
			t.Errorf("the other client waited %v", took)
		}
		time.Sleep(2 * hold)
		if got, want := w.arrived(), int(time.Since(w.start)/(50*time.Millisecond))*4; got < want*8/10 {
			t.Errorf("%d arrived, want %d if nothing but slots is missing", got, want)
		}
	})
}
