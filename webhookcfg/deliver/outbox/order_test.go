package outbox

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/webhookcfg/deliver"
)

// TestOrderAfterAnEarlyClaim: a client is claimed for one receiver's notifications while
// another one is paused. What waits for that one goes out before what is enqueued meanwhile.
func TestOrderAfterAnEarlyClaim(t *testing.T) {
	t.Parallel()
	for name, order := range map[string]Order{"EachEntity": EachEntity, "InOrder": InOrder} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.set("a", "", w.host(1, w.responding(10*time.Millisecond, func(at time.Duration) int {
					if at < 30*time.Second {
						return 503
					}
					return 204
				})))
				w.set("a", "other", w.host(2, &peer{takes: time.Millisecond}))
				p := w.run(Options{Order: order, Schedule: deliver.Schedule{time.Hour}}, deliver.Options{})
				defer p.stop()
				for i := range 12 { // the pauses grow
					w.db.enqueue("a", fmt.Sprint("x", i), fmt.Sprint("x", i))
				}
				time.Sleep(20 * time.Second)
				w.db.enqueue("a", "e", "m1")
				time.Sleep(8 * time.Second)
				if p.has("a") {
					t.Fatal("the client hasn't been given back")
				}
				for i := range 120 {
					w.db.enqueue("a", "other", fmt.Sprint("o", i))
					if i == 5 {
						w.db.enqueue("a", "e", "m2")
					}
					time.Sleep(time.Second)
				}
				var got []string
				for _, a := range w.all() {
					if strings.HasPrefix(a.id, "m") {
						got = append(got, a.id)
					}
				}
				if !slices.Equal(got, []string{"m1", "m2"}) {
					t.Errorf("they arrived as %v", got)
				}
			})
		})
	}
}

// TestSentAgainInOrder: while nobody has the client, a notification that waits for a retry is sent
// again. Those that waited for it go out before what is enqueued since, and don't wait for the
// time of the retry.
func TestSentAgainInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.set("a", "", w.host(1, w.responding(10*time.Millisecond, func(at time.Duration) int {
			if at < time.Second {
				return 503
			}
			return 204
		})))
		p := w.run(Options{Order: InOrder, Schedule: deliver.Schedule{time.Hour}}, deliver.Options{})
		defer p.stop()
		w.db.enqueue("a", "e", "m1")
		time.Sleep(2 * time.Second)
		w.db.enqueue("a", "e", "m2")
		time.Sleep(18 * time.Second)
		if p.has("a") {
			t.Fatal("the client hasn't been given back")
		}
		w.db.sendAgain("a", func() bool { return true })
		time.Sleep(time.Second)
		w.db.enqueue("a", "e", "m3")
		time.Sleep(time.Minute)
		var got []string
		for _, a := range w.all() {
			got = append(got, a.id)
		}
		if !slices.Equal(got, []string{"m1", "m1", "m2", "m3"}) {
			t.Errorf("they arrived as %v", got)
		}
	})
}

// TestOrderAfterAKill: a process is killed when it has just written that some notifications have
// been seen. The ones before them, which it had in memory, still go out first.
func TestOrderAfterAKill(t *testing.T) {
	t.Parallel()
	for name, n := range map[string]int{"more than fit": room + 10, "more than it writes at a time": minSeen + 10} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.set("a", "", w.host(1, &peer{takes: time.Second}))
				var want, got []string
				for i := range n {
					want = append(want, fmt.Sprint("m", i))
					w.db.enqueue("a", "e", want[i])
				}
				p := w.run(Options{}, deliver.Options{})
				for w.db.in("a", stateWaiting) == 0 {
					time.Sleep(time.Millisecond)
				}
				p.kill()
				if w.db.in("a", stateFresh) == 0 {
					t.Fatal("all have been written as seen")
				}
				p = w.run(Options{}, deliver.Options{})
				defer p.stop()
				w.await(n+1, time.Hour)
				for _, a := range w.all() {
					if !slices.Contains(got, a.id) { // the first one arrives twice
						got = append(got, a.id)
					}
				}
				if !slices.Equal(got, want) {
					t.Errorf("they arrived as %v", got)
				}
			})
		})
	}
}

// TestCostOfOrder: while one notification of ten fails once, the slots stay in use in each order,
// and the reads are few.
func TestCostOfOrder(t *testing.T) {
	t.Parallel()
	for name, order := range map[string]Order{"EachEntity": EachEntity, "InOrder": InOrder, "AnyOrder": AnyOrder} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const takes = 50 * time.Millisecond
				n := sized(2000, 5000)
				w := newWorld(t)
				failed := make(map[string]bool)
				delivered := make(map[int]int) // the last one of each entity
				w.set("a", "", w.host(1, &peer{takes: takes, respond: func(id string) int {
					w.mu.Lock()
					defer w.mu.Unlock()
					if strings.HasSuffix(id, "7") && !failed[id] {
						failed[id] = true
						return 500
					}
					w.delivered++
					i, _ := strconv.Atoi(id[1:])
					if i < delivered[i%1000] && order == InOrder {
						t.Errorf("%s arrived after m%d", id, delivered[i%1000])
					}
					delivered[i%1000] = i
					return 204
				}}))
				for i := range n {
					w.db.enqueue("a", fmt.Sprint("e", i%1000), fmt.Sprint("m", i))
				}
				p := w.run(Options{Order: order, Schedule: deliver.Schedule{5 * time.Second, 5 * time.Second}}, deliver.Options{})
				defer p.stop()
				last := w.awaitDelivered(n, time.Hour)
				share := float64(takes*time.Duration(n)*11/10/4) / float64(last)
				calls := w.db.counted()
				reads := calls["fresh"] + calls["waiting"]
				t.Logf("share %.2f, %d reads", share, reads)
				if share < 0.8 || reads > n/5 {
					t.Errorf("share of the slots: %.2f, want 0.8; %d reads", share, reads)
				}
			})
		})
	}
}
