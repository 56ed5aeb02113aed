package deliver_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/webhookcfg/deliver"
)

// hostQueue is a queue of a host's own: workers take what's ready, in order, and every so often
// what has become due gets ready.
type hostQueue struct {
	resolution time.Duration
	workers    int

	mu      sync.Mutex
	ready   []string
	due     map[string]time.Time
	waiting chan struct{} // has an element if something is ready
	left    sync.WaitGroup
}

// run sends n messages to one receiver, and returns how many calls of Send that took.
func (q *hostQueue) run(t *testing.T, s *deliver.Sender, n int) (calls int) {
	q.due, q.waiting = make(map[string]time.Time), make(chan struct{}, n)
	for i := range n {
		q.push(fmt.Sprint("m", i))
	}
	q.left.Add(n)
	stop := make(chan struct{})
	go q.move(stop)
	for range q.workers {
		go func() {
			for {
				select {
				case <-stop:
					return
				case <-q.waiting:
				}
				q.mu.Lock()
				id := q.ready[0]
				q.ready = q.ready[1:]
				calls++
				q.mu.Unlock()
				r := s.Send(t.Context(), "acme", "e1", deliver.Message{ID: id, Body: []byte("{}")})
				if r.Outcome == deliver.Delivered {
					q.left.Done()
					continue
				}
				q.mu.Lock()
				q.due[id] = time.Now().Add(r.Wait)
				q.mu.Unlock()
			}
		}()
	}
	q.left.Wait()
	close(stop)
	return calls
}

func (q *hostQueue) push(id string) {
	q.ready = append(q.ready, id)
	q.waiting <- struct{}{}
}

func (q *hostQueue) move(stop <-chan struct{}) {
	ticker := time.NewTicker(q.resolution)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return
		case now := <-ticker.C:
			q.mu.Lock()
			for id, at := range q.due {
				if !at.After(now) {
					delete(q.due, id)
					q.push(id)
				}
			}
			q.mu.Unlock()
		}
	}
}

// TestShareOfAHostsQueue: the share of a receiver's four slots that a backlog gets through a queue
// of a host's own. The package documentation sums it up.
func TestShareOfAHostsQueue(t *testing.T) {
	n := 250
	if *full {
		n = 1000
	}
	takes := []time.Duration{10 * time.Millisecond, 50 * time.Millisecond, 200 * time.Millisecond}
	for _, tt := range []struct {
		workers    int
		resolution time.Duration
		shares     [3][2]float64 // the least and the most
		deferrals  int
	}{
		{4, time.Second, [3][2]float64{{0.97, 1.01}, {0.97, 1.01}, {0.97, 1.01}}, 0},
		{64, 100 * time.Millisecond, [3][2]float64{{0.03, 0.08}, {0.2, 0.3}, {0.6, 1.01}}, 200},
		{64, time.Second, [3][2]float64{{0, 0.03}, {0.03, 0.08}, {0.15, 0.25}}, 200},
	} {
		for i, takes := range takes {
			synctest.Test(t, func(t *testing.T) {
				in := &inbox{takes: takes}
				s := newSender(t, configured(t, "http://example.com"), keyring{deliver.GenerateKey()}, &deliver.Options{Policy: in.policy()})
				defer s.CloseIdleConnections()
				start := time.Now()
				q := &hostQueue{resolution: tt.resolution, workers: tt.workers}
				calls := q.run(t, s, n)
				share, deferrals := (takes*time.Duration(n)/4).Seconds()/time.Since(start).Seconds(), (calls-n)/n
				if share < tt.shares[i][0] || share > tt.shares[i][1] || deferrals > tt.deferrals {
					t.Errorf("%d workers, delays of %v, a receiver of %v: share %.2f with %d deferrals a message, want %v and up to %d", tt.workers, tt.resolution, takes, share, deferrals, tt.shares[i], tt.deferrals)
				}
			})
		}
	}
}
