package deliver

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// The numbers that the package doc proposes for a shard.
const (
	shardWorkers  = 192
	fetchInterval = 20 * time.Millisecond
	wakeInterval  = 200 * time.Millisecond
	deferralHold  = 500 * time.Millisecond
)

// onEachQueue calls test in a bubble with a shard, and with an overflow, where only backlogs
// wait. Its workers wait before they defer, and so write less a second.
func onEachQueue(t *testing.T, test func(*testing.T, *shard)) {
	for name, s := range map[string]*shard{
		"shard":    {},
		"overflow": {hold: deferralHold},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s.limiter = defaultLimiter()
				test(t, s)
			})
		})
	}
}

// shard is a queue with workers of its own: it refills free workers at an interval, and wakes
// what is due at another one. It runs in a bubble of package synctest.
type shard struct {
	limiter *limiter
	attempt func(*notification) (time.Duration, verdict)
	hold    time.Duration // before a busy receiver's notification is deferred

	mu        sync.Mutex
	arriving  []*notification // in the order of their times
	available []*notification
	due       map[time.Time][]*notification
	free      int // workers
	left      int // notifications
	calls     int // of acquire
	attempts  int
	underway  map[receiverKey]int // attempts of a client at a receiver, and of a client
	most      map[receiverKey]int // of these at the same time
	longest   map[string]int      // the line of a client
}

func defaultLimiter() *limiter {
	var o Options
	_ = o.complete()
	return newLimiter(&o)
}

func newBacklog(n int, client, hostport string) (all []*notification) {
	for range n {
		all = append(all, &notification{client: client, hostport: hostport, enqueued: time.Now()})
	}
	return all
}

// deliver delivers all notifications, which are in the order of their times.
func (s *shard) deliver(t *testing.T, all []*notification) {
	s.arriving, s.left, s.free, s.due = all, len(all), shardWorkers, map[time.Time][]*notification{}
	s.underway, s.most, s.longest = map[receiverKey]int{}, map[receiverKey]int{}, map[string]int{}
	start := time.Now()
	var workers sync.WaitGroup
	for s.refill(t, start, &workers) {
		time.Sleep(fetchInterval)
	}
	workers.Wait()
	if n := len(s.limiter.clients) + len(s.limiter.receivers); n > 0 {
		t.Errorf("%d clients and receivers have attempts under way or waiting", n)
	}
}

// refill gives the free workers what is available, and reports whether anything is left.
func (s *shard) refill(t *testing.T, start time.Time, workers *sync.WaitGroup) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for len(s.arriving) > 0 && !s.arriving[0].enqueued.After(now) {
		s.available = append(s.available, s.arriving[0])
		s.arriving = s.arriving[1:]
	}
	s.available = append(s.available, s.due[now]...)
	delete(s.due, now)
	n := min(s.free, len(s.available))
	s.free -= n
	for _, n := range s.available[:n] {
		workers.Go(func() {
			if again := s.work(t, n); again > 0 {
				s.wait(n, start, again)
			}
		})
	}
	s.available = s.available[n:]
	return s.left > 0
}

// wait has a notification wait for a time, until the queue wakes it.
func (s *shard) wait(n *notification, start time.Time, again time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := start.Add((time.Since(start) + again + wakeInterval - 1) / wakeInterval * wakeInterval)
	s.due[at] = append(s.due[at], n)
}

// work makes an attempt, and returns when to make another one; zero if it succeeded.
func (s *shard) work(t *testing.T, n *notification) (again time.Duration) {
	g, _ := s.limiter.acquire(t.Context(), n.client, n.hostport)
	var v verdict
	switch {
	case g.slot != nil:
		var duration time.Duration
		s.count(n, 1)
		duration, v = s.attempt(n)
		time.Sleep(duration)
		s.count(n, -1)
		if g.slot.release(time.Now(), v) {
			s.recall(n.client)
		}
	case g.reason == ReasonBusy:
		held := min(s.hold, g.wait)
		time.Sleep(held)
		g.wait = max(g.wait-held, 1) // not delivered
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free++
	s.calls++
	switch {
	case g.slot == nil:
		n.deferrals++
		return g.wait
	case v.effect == effectSuccess:
		s.attempts++
		s.left--
		n.sent = time.Now()
		return 0
	default:
		s.attempts++
		return max(5*time.Second, v.pause)
	}
}

// TestBacklog: a healthy receiver gets a backlog as fast as its slots allow, each message passes
// through the queue about once more, and neither depends on the size of the backlog.
func TestBacklog(t *testing.T) {
	for _, tt := range []struct {
		takes     time.Duration
		used      float64 // of the slots, at least
		deferrals float64 // of a notification, at most
	}{
		{10 * time.Millisecond, 0.7, 4},
		{50 * time.Millisecond, 0.9, 2},
		{200 * time.Millisecond, 0.9, 2},
	} {
		for _, backlog := range []int{1000, 4000, 20_000} {
			for _, spread := range []float64{0, 0.5} {
				t.Run(fmt.Sprint(backlog, " of ", tt.takes, " ± ", 100*spread, " %"), func(t *testing.T) {
					onEachQueue(t, func(t *testing.T, s *shard) {
						random := rand.New(rand.NewPCG(1, 2))
						var used time.Duration
						s.attempt = func(*notification) (time.Duration, verdict) {
							s.mu.Lock()
							defer s.mu.Unlock()
							d := time.Duration(float64(tt.takes) * (1 + spread*(2*random.Float64()-1)))
							used += d
							return d, success
						}
						start := time.Now()
						s.deliver(t, newBacklog(backlog, "acme", "a:443"))
						share := float64(used) / defaultPerReceiver / float64(time.Since(start))
						deferrals := float64(s.calls-backlog) / float64(backlog)
						t.Logf("%.3f of the slots used, %.2f deferrals", share, deferrals)
						if share < tt.used || deferrals > tt.deferrals {
							t.Errorf("%.3f of the slots used, want %v; %.2f deferrals, want at most %v", share, tt.used, deferrals, tt.deferrals)
						}
						if most, longest := s.most[receiverKey{"acme", "a:443"}], s.longest["acme"]; most > 4 || longest > shardWorkers/2 {
							t.Errorf("%d attempts at the same time, %d waiting", most, longest)
						}
					})
				})
			}
		}
	}
}

// recall makes due what waits for a client, as a host does when a receiver has recovered.
func (s *shard) recall(client string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for at, due := range s.due {
		s.due[at] = slices.DeleteFunc(due, func(n *notification) bool {
			if n.client == client {
				s.available = append(s.available, n)
			}
			return n.client == client
		})
	}
}

func (s *shard) count(n *notification, change int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range []receiverKey{{n.client, n.hostport}, {n.client, ""}} {
		s.underway[key] += change
		s.most[key] = max(s.most[key], s.underway[key])
	}
	s.limiter.mu.Lock()
	defer s.limiter.mu.Unlock()
	if c := s.limiter.clients[n.client]; c != nil {
		s.longest[n.client] = max(s.longest[n.client], len(c.line))
	}
}

// TestBacklogOfManyReceivers: the same holds for the slots of a client.
func TestBacklogOfManyReceivers(t *testing.T) {
	const backlog = 4000
	for _, takes := range []time.Duration{50 * time.Millisecond, 200 * time.Millisecond} {
		onEachQueue(t, func(t *testing.T, s *shard) {
			s.attempt = func(*notification) (time.Duration, verdict) { return takes, success }
			all := newBacklog(backlog, "acme", "")
			for i, n := range all {
				n.hostport = fmt.Sprint(i%1000, ":443")
			}
			start := time.Now()
			s.deliver(t, all)
			share := float64(backlog*takes/defaultPerClient) / float64(time.Since(start))
			deferrals := float64(s.calls-backlog) / backlog
			t.Logf("%.3f of the slots used, %.2f deferrals", share, deferrals)
			if most := s.most[receiverKey{client: "acme"}]; share < 0.9 || deferrals > 2 || most > defaultPerClient {
				t.Errorf("%v: %.3f of the slots used, %.2f deferrals, %d attempts at the same time", takes, share, deferrals, most)
			}
		})
	}
}

// TestBacklogBehindAnother: in an overflow, a client's backlog that comes after a much larger
// one starts before that one is delivered, and then goes out quickly.
func TestBacklogBehindAnother(t *testing.T) {
	for _, takes := range []time.Duration{10 * time.Millisecond, 50 * time.Millisecond, 200 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			s := &shard{limiter: defaultLimiter(), hold: deferralHold}
			s.attempt = func(n *notification) (time.Duration, verdict) {
				if n.client == "acme" {
					return takes, success
				}
				return 50 * time.Millisecond, success
			}
			start, behind := time.Now(), newBacklog(1000, "other", "b:443")
			s.deliver(t, slices.Concat(newBacklog(10_000, "acme", "a:443"), behind))
			bySent := func(a, b *notification) int { return a.sent.Compare(b.sent) }
			first, last := slices.MinFunc(behind, bySent).sent, slices.MaxFunc(behind, bySent).sent
			t.Logf("%v: the first after %v, the last %v later", takes, first.Sub(start), last.Sub(first))
			if first.Sub(start) > 30*time.Second || last.Sub(first) > 25*time.Second {
				t.Errorf("%v: the first after %v, the last %v later", takes, first.Sub(start), last.Sub(first))
			}
		})
	}
}

// newTraffic returns notifications of small clients, each to a receiver of its own: one in a
// time, for as long as given.
func newTraffic(clients int, every, until time.Duration) (all []*notification) {
	start := time.Now()
	for at := time.Duration(0); at < until; at += every {
		for i := range clients {
			all = append(all, &notification{client: fmt.Sprint("small", i), hostport: fmt.Sprint("small", i, ":443"), enqueued: start.Add(at)})
		}
	}
	return all
}

// latency returns the time in which so many percent of the small clients' notifications were sent.
func latency(all []*notification, percent int) time.Duration {
	var each []time.Duration
	for _, n := range all {
		if strings.HasPrefix(n.client, "small") {
			each = append(each, n.sent.Sub(n.enqueued))
		}
	}
	slices.Sort(each)
	return each[(len(each)-1)*percent/100]
}

// TestSharedShard: clients with a backlog, in front of small ones in the same shard, get what
// their receivers and their limits allow. Whatever their receivers do, the small ones hardly
// wait, and no notification passes through the queue without end.
func TestSharedShard(t *testing.T) {
	const ms = time.Millisecond
	limited := func(perClient, perReceiver int) func(string) (int, int) {
		return func(client string) (int, int) {
			if strings.HasPrefix(client, "big") {
				return perClient, perReceiver
			}
			return 0, 0
		}
	}
	for _, tt := range []struct {
		name    string
		clients int // with a backlog
		backlog int // of each
		takes   time.Duration
		slow    time.Duration    // takes this instead, if it fails not, but is slow
		hit     func(n int) bool // the n-th attempt fails, or is slow
		limits  func(client string) (perClient, perReceiver int)
		slots   int           // of a receiver
		used    float64       // of them, at least
		calls   float64       // of acquire for a notification, at most
		p99     time.Duration // of the small clients' notifications, at most
	}{
		{name: "one", clients: 1, backlog: 3000, takes: 50 * ms, slots: 4, used: 0.9, calls: 3, p99: time.Second},
		{name: "three", clients: 3, backlog: 3000, takes: 50 * ms, slots: 4, used: 0.9, calls: 3, p99: 2 * time.Second},
		{name: "fast receivers", clients: 3, backlog: 500, takes: 10 * ms, slots: 4, used: 0.7, calls: 5, p99: 2 * time.Second},
		{name: "more slots", clients: 3, backlog: 500, takes: 50 * ms, limits: limited(16, 8), slots: 8, used: 0.8, calls: 3, p99: 2 * time.Second},
		{name: "few slots", clients: 3, backlog: 500, takes: 50 * ms, limits: limited(1, 1), slots: 1, used: 0.8, calls: 4, p99: 2 * time.Second},
		{name: "one in twenty fails", clients: 3, backlog: 1500, takes: 50 * ms, hit: func(n int) bool { return n%20 == 0 }, slots: 4, used: 0.4, calls: 5, p99: 2 * time.Second},
		{name: "one in two fails", clients: 3, backlog: 500, takes: 50 * ms, hit: func(n int) bool { return n%2 == 0 }, slots: 4, calls: 20, p99: 2 * time.Second},
		{name: "paused now and then", clients: 3, backlog: 500, takes: 50 * ms, hit: func(n int) bool { return n%20 < 6 }, slots: 4, calls: 40, p99: 2 * time.Second},
		{name: "one in twenty is slow", clients: 3, backlog: 500, takes: 50 * ms, slow: 5 * time.Second, hit: func(n int) bool { return n%20 == 0 }, slots: 4, used: 0.8, calls: 10, p99: 2 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &shard{limiter: defaultLimiter()}
				if tt.limits != nil {
					s.limiter = newLimiter(&Options{PerClient: defaultPerClient, PerReceiver: defaultPerReceiver, MaxPause: time.Hour, Patience: defaultPatience, Limits: tt.limits})
				}
				attempts, used := map[string]int{}, time.Duration(0)
				s.attempt = func(n *notification) (time.Duration, verdict) {
					if strings.HasPrefix(n.client, "small") {
						return 5 * ms, success
					}
					s.mu.Lock()
					defer s.mu.Unlock()
					attempts[n.client]++
					takes, v := tt.takes, success
					switch {
					case tt.hit == nil || !tt.hit(attempts[n.client]):
					case tt.slow > 0:
						takes = tt.slow
					default:
						v = failure
					}
					used += takes
					return takes, v
				}
				var big []*notification
				for i := range tt.clients * tt.backlog {
					client := fmt.Sprint("big", i%tt.clients)
					big = append(big, &notification{client: client, hostport: client + ":443", enqueued: time.Now()})
				}
				start, small := time.Now(), newTraffic(7, 500*ms, 30*time.Second)
				s.deliver(t, slices.Concat(big, small))
				last, deferrals, most := start, 0, 0
				for _, n := range big {
					deferrals, most = deferrals+n.deferrals, max(most, n.deferrals)
					if n.sent.After(last) {
						last = n.sent
					}
				}
				share := float64(used) / float64(tt.clients*tt.slots) / float64(last.Sub(start))
				calls := float64(s.calls-len(small)) / float64(len(big))
				p99 := latency(small, 99)
				t.Logf("%v, %.2f of the slots used, %.2f calls, at most %d deferrals, p99 %v", last.Sub(start), share, calls, most, p99)
				if share < tt.used || calls > tt.calls || p99 > tt.p99 {
					t.Errorf("want %v, %v, %v", tt.used, tt.calls, tt.p99)
				}
				for i := range tt.clients {
					key := receiverKey{client: fmt.Sprint("big", i)}
					if s.longest[key.client] > shardWorkers/2 {
						t.Errorf("%d wait for %s", s.longest[key.client], key.client)
					}
					key.hostport = key.client + ":443"
					if s.most[key] > tt.slots {
						t.Errorf("%d attempts of %s at the same time", s.most[key], key.client)
					}
				}
			})
		})
	}
}

// TestRecoveredBacklog: once a receiver has recovered, and what waits was made due, it gets its
// backlog as fast as its slots allow.
func TestRecoveredBacklog(t *testing.T) {
	const takes, outage, backlog = 50 * time.Millisecond, 30 * time.Second, 3000
	for name, down := range map[string]struct {
		takes time.Duration
		verdict
	}{
		"failing":   {takes, failure},
		"hanging":   {5 * time.Second, failure},
		"throttles": {takes, verdict{effectFailure, 10 * time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			onEachQueue(t, func(t *testing.T, s *shard) {
				var first time.Time
				start := time.Now()
				s.attempt = func(*notification) (time.Duration, verdict) {
					if time.Since(start) < outage {
						return down.takes, down.verdict
					}
					s.mu.Lock()
					defer s.mu.Unlock()
					if first.IsZero() {
						first = time.Now()
					}
					return takes, success
				}
				all := newBacklog(backlog, "acme", "a:443")
				s.deliver(t, all)
				took := time.Since(first)
				t.Logf("%v after %v, %d attempts, %d calls", took, first.Sub(start), s.attempts, s.calls)
				if took > backlog*takes/4*3/2 || s.calls > 6*backlog {
					t.Errorf("took %v for %v, %d calls", took, backlog*takes/4, s.calls)
				}
			})
		})
	}
}
