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
	// shardWorkers is the number that package deliver asks for. If calls wait for a slot of
	// one client, they can then hold at most half of the workers.
	shardWorkers    = 192
	hangingMessages = 300 // in front of the others
	healthyMessages = 300
	healthyClients  = 10
	hangingTimeout  = 5 * time.Second
	trialTime       = 3 * time.Second
)

// fairness measures how long the messages of healthy clients wait in a queue when a client
// whose receiver hangs has messages in front of them.
func fairness(s settings, r *report) error {
	r.section("Delivery, a receiver that hangs", fmt.Sprintf(`A queue in memory has %d workers. First come %d messages of a client whose receiver
accepts requests but never responds (the sender gives up after %v). Behind them are %d
messages of %d other clients. The figures are the waits of these, from their entry into the
queue until Send returns, but at most %v.`,
		shardWorkers, hangingMessages, hangingTimeout, healthyMessages, healthyClients, trialTime))
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

// queueTrial puts messages for the hanging receiver in front of messages for healthy ones. It
// delivers them until the healthy receivers have theirs or the time is up, and returns the
// 99th percentile of the healthy messages' waits, in milliseconds.
func queueTrial(hanging int) (p99 float64, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), trialTime)
	defer cancel()
	healthy := newReceiver("http")
	defer healthy.Close()
	hangs := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // without this, the server doesn't notice that the connection ends
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

	// A message is in the queue, with a worker, or waiting for a timer.
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
		waits = append(waits, milliseconds(trialTime)) // it waits at least this long
	}
	return quantile(waits, 0.99), nil
}

func healthyClient(i int) string { return fmt.Sprintf("healthy%d", i%healthyClients) }
