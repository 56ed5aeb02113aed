package deliver

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// notification is an entry of a queue.
type notification struct {
	client, hostport string
	enqueued         time.Time
	sent             time.Time // zero: not yet
	deferrals        int
}

// host is a queue that obeys the waits, and its workers. It runs in a bubble of package
// synctest, where waiting takes no time.
type host struct {
	limiter *limiter      // nil: none is deferred
	workers int           // attempts at the same time
	take    time.Duration // to take an entry from the queue
	attempt func(*notification) (time.Duration, verdict)
	queue   chan *notification

	mu       sync.Mutex
	all      []*notification
	attempts int
	underway map[receiverKey]int // attempts of a client at a receiver, and of a client
	most     map[receiverKey]int // of these at the same time
}

// start starts the workers. The queue holds up to capacity entries.
func (h *host) start(t *testing.T, capacity int) {
	h.queue = make(chan *notification, capacity)
	h.underway, h.most = map[receiverKey]int{}, map[receiverKey]int{}
	done := make(chan struct{})
	var workers sync.WaitGroup
	for range h.workers {
		workers.Go(func() {
			for {
				select {
				case n := <-h.queue:
					h.work(n)
				case <-done:
					return
				}
			}
		})
	}
	t.Cleanup(func() {
		close(done)
		workers.Wait()
	})
}

func (h *host) update(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f()
}

func (h *host) enqueue(client, hostport string) {
	n := &notification{client: client, hostport: hostport, enqueued: time.Now()}
	h.update(func() { h.all = append(h.all, n) })
	h.queue <- n
}

func (h *host) again(n *notification, wait time.Duration) {
	time.AfterFunc(wait, func() { h.queue <- n })
}

func (h *host) work(n *notification) {
	time.Sleep(h.take)
	release := func(time.Time, verdict) bool { return false }
	if h.limiter != nil {
		slot, _, wait := try(h.limiter, n.client, n.hostport, time.Now())
		if slot == nil {
			h.update(func() { n.deferrals++ })
			h.again(n, wait)
			return
		}
		release = slot.release
	}
	keys := []receiverKey{{n.client, n.hostport}, {n.client, ""}}
	h.update(func() {
		h.attempts++
		for _, key := range keys {
			h.underway[key]++
			h.most[key] = max(h.most[key], h.underway[key])
		}
	})
	duration, v := h.attempt(n)
	time.Sleep(duration)
	h.update(func() {
		for _, key := range keys {
			h.underway[key]--
		}
		if v.effect == effectSuccess {
			n.sent = time.Now()
		}
	})
	release(time.Now(), v)
	if v.effect != effectSuccess {
		h.again(n, max(5*time.Second, v.pause))
	}
}

// checkLimits checks that no limit was ever exceeded.
func (h *host) checkLimits(t *testing.T) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	for key, most := range h.most {
		perClient, limit := h.limiter.limits(key.client)
		if key.hostport == "" {
			limit = perClient
		}
		if most > limit {
			t.Errorf("%d attempts at the same time for %v, want at most %d", most, key, limit)
		}
	}
}

// counts returns the number of attempts and deferrals, and the most deferrals of one
// notification.
func (h *host) counts() (attempts, deferrals, most int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, n := range h.all {
		deferrals += n.deferrals
		most = max(most, n.deferrals)
	}
	return h.attempts, deferrals, most
}

// latencies returns, sorted, the times from being enqueued to being sent of those
// notifications whose client has the prefix. The number of these is returned, too.
func (h *host) latencies(prefix string) (sent []time.Duration, all int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, n := range h.all {
		if !strings.HasPrefix(n.client, prefix) {
			continue
		}
		all++
		if !n.sent.IsZero() {
			sent = append(sent, n.sent.Sub(n.enqueued))
		}
	}
	slices.Sort(sent)
	return sent, all
}

// TestFairness: whatever the receivers of a client do, with its notifications at the head
// of the queue, those of ten other clients are sent in time. Without the limiter, none of
// them is as long as the receivers hang.
func TestFairness(t *testing.T) {
	after := func(d time.Duration, v verdict) func() (time.Duration, verdict) {
		return func() (time.Duration, verdict) { return d, v }
	}
	hang := after(5*time.Second, failure)
	tests := []struct {
		name      string
		limited   bool
		ahead     int // notifications at the head of the queue
		receivers int
		attempt   func() (time.Duration, verdict)
	}{
		{"no other client", true, 0, 1, nil},
		{"one receiver hangs", true, 300, 1, hang},
		{"one receiver hangs, without limits", false, 300, 1, hang},
		{"many receivers hang", true, 1000, 1000, hang},
		{"many receivers hang, without limits", false, 1000, 1000, hang},
		{"flood of slow responses", true, 3000, 1, after(time.Second, success)},
		{"flood of fast responses", true, 3000, 1, after(time.Millisecond, success)},
		{"no connection", true, 300, 1, after(0, failure)},
		{"throttled", true, 300, 1, after(time.Millisecond, verdict{effectFailure, time.Minute})},
	}
	for _, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			h := &host{workers: 32, take: time.Millisecond, attempt: func(n *notification) (time.Duration, verdict) {
				if n.client == "bad" {
					return tt.attempt()
				}
				return 2 * time.Millisecond, success
			}}
			if tt.limited {
				h.limiter = limitTo(16, 4, time.Hour)
			}
			h.start(t, 10_000)
			for i := range tt.ahead {
				h.enqueue("bad", fmt.Sprint("bad:", i%tt.receivers))
			}
			for i := range 1000 {
				h.enqueue(fmt.Sprint("healthy", i%10), "healthy:443")
				time.Sleep(time.Millisecond)
			}
			time.Sleep(30 * time.Second)
			synctest.Wait()
			switch sent, all := h.latencies("healthy"); {
			case !tt.limited:
				if len(sent) > 0 {
					t.Errorf("%s: %d of %d sent, want none", tt.name, len(sent), all)
				}
			case len(sent) < all || sent[all*99/100] > 250*time.Millisecond:
				t.Errorf("%s: %d of %d sent, within %v", tt.name, len(sent), all, sent)
			default:
				h.checkLimits(t)
			}
		})
	}
}

// TestDeferredAreSent: while a receiver hangs, few attempts are made, and those that wait
// come back rarely. Once it responds, each is sent after few turns, although new ones
// arrive.
func TestDeferredAreSent(t *testing.T) {
	const outage = 10 * time.Minute
	const lastPause = 320 * time.Second
	for _, waiting := range []int{10, 300, 3000} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			h := &host{
				limiter: limitTo(16, 4, time.Hour),
				workers: 16,
				take:    time.Millisecond,
				attempt: func(*notification) (time.Duration, verdict) {
					if time.Since(start) < outage {
						return 5 * time.Second, failure
					}
					return 20 * time.Millisecond, success
				},
			}
			h.start(t, 10_000)
			for range waiting {
				h.enqueue("acme", "a:443")
			}
			check := func(at time.Duration, want int) {
				time.Sleep(at - time.Since(start))
				synctest.Wait()
				attempts, deferrals, _ := h.counts()
				if attempts != want || deferrals > 3*waiting+int(at/maxTurn) {
					t.Errorf("%d waiting: after %v, %d attempts, want %d, and %d deferrals", waiting, at, attempts, want, deferrals)
				}
			}
			check(4*time.Second, 4)
			check(outage, 14) // twice four fail, then one after each pause

			h.update(func() {
				for _, n := range h.all {
					n.deferrals = 0
				}
			})
			for range 60 {
				for range 20 {
					h.enqueue("acme", "a:443")
				}
				time.Sleep(time.Second)
			}
			time.Sleep(lastPause + time.Duration(waiting+60*20)*maxTurn)
			synctest.Wait()
			if sent, all := h.latencies("acme"); len(sent) < all {
				t.Errorf("%d waiting: %d of %d sent", waiting, len(sent), all)
			}
			if _, _, most := h.counts(); most > 10 {
				t.Errorf("%d waiting: one was deferred %d times", waiting, most)
			}
			h.checkLimits(t)
		})
	}
}
