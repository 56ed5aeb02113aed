package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

const (
	// shardWorkers is what package deliver asks for, so that the calls that wait for a slot of
	// one client hold at most half of the workers.
	shardWorkers    = 192
	hangingMessages = 300 // in front of the others
	healthyMessages = 300
	healthyClients  = 10
	hangingTimeout  = 5 * time.Second
	trialTime       = 3 * time.Second
)

// fairness measures how long the messages of healthy clients wait in a queue if those of a
// client whose receiver hangs are in front of them.
func fairness(s settings, r *report) error {
	r.section("Delivery, a receiver that hangs", fmt.Sprintf(`A queue in memory with %d workers. %d messages of %d clients follow %d of a client whose
receiver accepts requests and never responds (time-out %v). Times from the entry into the queue until Send
returns, at most %v.`,
		shardWorkers, healthyMessages, healthyClients, hangingMessages, hangingTimeout, trialTime))
	var without, with, ratios []float64
	for range s.rounds {
		alone, err := queueTrial(0)
		if err != nil {
			return err
		}
		meanwhile, err := queueTrial(hangingMessages)
		if err != nil {
			return err
		}
		without, with, ratios = append(without, alone), append(with, meanwhile), append(ratios, meanwhile/alone)
	}
	r.table([]string{"p99, none hangs", "p99, one hangs", "ratio", "budget"},
		[]string{precise(median(without)) + " ms", precise(median(with)) + " ms", spread(ratios), "≤ 3"})
	return nil
}

// queued is a message in the queue.
type queued struct {
	client string
	entry  time.Time
}

// queueTrial delivers behind so many messages to the receiver that hangs, until those to
// healthy receivers are delivered or the time is up. It returns the 99th percentile of
// their waits in milliseconds.
func queueTrial(hanging int) (p99 float64, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), trialTime)
	defer cancel()
	healthy := newReceiver("http")
	defer healthy.Close()
	hangs := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // or else the server would not notice the end of the connection
		<-r.Context().Done()
	}))
	defer hangs.Close()

	st := store.NewMemory()
	set := func(client, url string) error {
		return st.Apply(ctx, webhookcfg.SetChange(client, webhookcfg.All(), egress.NewURL(url)))
	}
	if err := set("hanging", hangs.URL); err != nil {
		return 0, err
	}
	for i := range healthyClients {
		if err := set(healthyClient(i), healthy.URL); err != nil {
			return 0, err
		}
	}
	sender, err := deliver.New(st, oneKey{deliver.GenerateKey()}, &deliver.Options{Policy: healthy.policy, Timeout: hangingTimeout})
	if err != nil {
		return 0, err
	}
	defer sender.CloseIdleConnections()

	// A message is in the queue, at a worker, or waits for a timer.
	queue := make(chan queued, hanging+healthyMessages)
	for range hanging {
		queue <- queued{"hanging", time.Now()}
	}
	for i := range healthyMessages {
		queue <- queued{healthyClient(i), time.Now()}
	}
	var mu sync.Mutex
	var waits []float64
	var workers sync.WaitGroup
	for range shardWorkers {
		workers.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case q := <-queue:
					r := sender.Send(ctx, q.client, "e1", deliver.Message{ID: "msg_1", Body: notification})
					switch {
					case r.Outcome != deliver.Delivered:
						time.AfterFunc(max(r.Wait, time.Millisecond), func() { queue <- q })
					case q.client != "hanging":
						mu.Lock()
						waits = append(waits, milliseconds(time.Since(q.entry)))
						if len(waits) == healthyMessages {
							cancel()
						}
						mu.Unlock()
					}
				}
			}
		})
	}
	workers.Wait()
	for len(waits) < healthyMessages {
		waits = append(waits, milliseconds(trialTime)) // at least
	}
	return quantile(waits, 0.99), nil
}

func healthyClient(i int) string { return fmt.Sprintf("healthy%d", i%healthyClients) }
