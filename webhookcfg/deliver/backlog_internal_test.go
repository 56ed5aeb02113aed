package deliver

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// The numbers that the package doc proposes.
const (
	shardWorkers  = 192
	fetchInterval = 20 * time.Millisecond
	wakeInterval  = 200 * time.Millisecond
)

// shard is a queue with workers of its own: it refills free workers at an interval, and wakes
// what is due at another one. It runs in a bubble of package synctest.
type shard struct {
	limiter *limiter
	attempt func(*notification) (time.Duration, verdict)

	mu        sync.Mutex
	available []*notification
	due       map[time.Time][]*notification
	free      int // workers
	left      int // notifications
	underway  map[receiverKey]int
	most      map[receiverKey]int
	waiting   map[string]int // calls of acquire, by client
	calls     int
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

// deliver delivers all notifications.
func (s *shard) deliver(t *testing.T, all []*notification) {
	s.available, s.left, s.free = all, len(all), shardWorkers
	s.due, s.waiting = map[time.Time][]*notification{}, map[string]int{}
	s.underway, s.most = map[receiverKey]int{}, map[receiverKey]int{}
	var workers sync.WaitGroup
	for ticks := 0; s.refill(t, &workers, ticks%int(wakeInterval/fetchInterval) == 0); ticks++ {
		time.Sleep(fetchInterval)
	}
	workers.Wait()
}

// refill gives the free workers what is available, and reports whether anything is left.
func (s *shard) refill(t *testing.T, workers *sync.WaitGroup, wake bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := time.Now(); wake {
		s.available = append(s.available, s.due[now]...)
		delete(s.due, now)
	}
	n := min(s.free, len(s.available))
	s.free -= n
	for _, n := range s.available[:n] {
		workers.Go(func() { s.work(t, n) })
	}
	s.available = s.available[n:]
	return s.left > 0
}

func (s *shard) work(t *testing.T, n *notification) {
	g := s.acquire(t.Context(), n)
	var again time.Duration
	switch key := (receiverKey{n.client, n.hostport}); {
	case g.slot == nil:
		n.deferrals++
		again = g.wait
	default:
		s.count(key, 1)
		duration, v := s.attempt(n)
		time.Sleep(duration)
		s.count(key, -1)
		g.slot.release(time.Now(), v)
		if v.effect != effectSuccess {
			again = max(5*time.Second, v.pause)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free++
	if again == 0 {
		n.sent = time.Now()
		s.left--
		return
	}
	sinceEnqueued := (time.Since(n.enqueued) + again + wakeInterval - 1) / wakeInterval * wakeInterval
	at := n.enqueued.Add(sinceEnqueued)
	s.due[at] = append(s.due[at], n)
}

func (s *shard) acquire(ctx context.Context, n *notification) grant {
	s.mu.Lock()
	s.calls++
	s.waiting[n.client]++
	s.mu.Unlock()
	g, _ := s.limiter.acquire(ctx, n.client, n.hostport)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting[n.client]--
	return g
}

func (s *shard) count(key receiverKey, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.underway[key] += n
	s.most[key] = max(s.most[key], s.underway[key])
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
					synctest.Test(t, func(t *testing.T) {
						random := rand.New(rand.NewPCG(1, 2))
						var used time.Duration
						s := &shard{limiter: defaultLimiter()}
						s.attempt = func(*notification) (time.Duration, verdict) {
							s.mu.Lock()
							defer s.mu.Unlock()
							d := time.Duration(float64(tt.takes) * (1 + spread*(2*random.Float64()-1)))
							used += d
							return d, success
						}
						start := time.Now()
						s.deliver(t, newBacklog(backlog, "acme", "a:443"))
						share := float64(used) / 4 / float64(time.Since(start))
						deferrals := float64(s.calls-backlog) / float64(backlog)
						t.Logf("%.3f of the slots used, %.2f deferrals", share, deferrals)
						if share < tt.used || deferrals > tt.deferrals {
							t.Errorf("%.3f of the slots used, want %v; %.2f deferrals, want at most %v", share, tt.used, deferrals, tt.deferrals)
						}
						if most := s.most[receiverKey{"acme", "a:443"}]; most > 4 {
							t.Errorf("%d attempts at the same time", most)
						}
					})
				})
			}
		}
	}
}
