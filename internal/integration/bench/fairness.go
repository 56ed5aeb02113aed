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
	hangingMessages = 300 // in front of the others
	healthyMessages = 300
	healthyClients  = 10
	hangingTimeout  = 5 * time.Second
)

// fairness measures how long the messages of healthy clients wait in a queue if those of a
// client whose receiver hangs are in front of them.
func (s settings) fairness(r *report) error {
	r.section("Delivery, a receiver that hangs", fmt.Sprintf(`A queue in memory with %d workers. %d messages of %d clients follow %d of a client whose
receiver accepts requests and never responds (time-out %v). Times from the entry into the queue until Send
returns. "Without limits", Options.PerClient and PerReceiver are as high as it takes to have no effect.`,
		deliveriesUnderWay, healthyMessages, healthyClients, hangingMessages, hangingTimeout))
	var rows [][]string
	for _, limited := range []bool{true, false} {
		var without, with, ratios []float64
		delivered := healthyMessages
		for range s.rounds {
			alone, err := queueTrial(limited, 0, s.watch)
			if err != nil {
				return err
			}
			beside, err := queueTrial(limited, hangingMessages, s.watch)
			if err != nil {
				return err
			}
			without, with = append(without, alone.p99()), append(with, beside.p99())
			ratios = append(ratios, beside.p99()/alone.p99())
			delivered = min(delivered, len(beside.waits))
		}
		name, ratio, budget := "default limits", spread(ratios), "≤ 10"
		slow := fmt.Sprintf("%.1f ms", median(with)/1e6)
		if !limited {
			name, budget = "without limits", ""
		}
		if delivered < healthyMessages {
			slow, ratio = fmt.Sprintf("> %v", s.watch), ""
		}
		rows = append(rows, []string{name, fmt.Sprintf("%.1f ms", median(without)/1e6), slow, ratio, budget, fmt.Sprintf("%d of %d", delivered, healthyMessages)})
	}
	r.table([]string{"limiter", "p99, none hangs", "p99, one hangs", "ratio", "budget", fmt.Sprintf("delivered within %v", s.watch)}, rows...)
	return nil
}

// trial has the waits of the messages that were delivered to healthy receivers.
type trial struct{ waits []float64 }

func (t trial) p99() float64 {
	if len(t.waits) == 0 {
		return 0
	}
	return quantile(t.waits, 0.99)
}

// queued is a message in the queue.
type queued struct {
	client string
	entry  time.Time
}

// queueTrial delivers until all messages to healthy receivers are, or the time is up.
func queueTrial(limited bool, hanging int, limit time.Duration) (trial, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
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
		return trial{}, err
	}
	for i := range healthyClients {
		if err := set(healthyClient(i), healthy.URL); err != nil {
			return trial{}, err
		}
	}
	opts := &deliver.Options{Policy: healthy.policy, Timeout: hangingTimeout}
	if !limited {
		opts.PerClient, opts.PerReceiver = 1<<20, 1<<20
	}
	sender, err := deliver.New(st, oneKey{deliver.GenerateKey()}, opts)
	if err != nil {
		return trial{}, err
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
	var t trial
	var workers sync.WaitGroup
	for range deliveriesUnderWay {
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
						t.waits = append(t.waits, float64(time.Since(q.entry)))
						if len(t.waits) == healthyMessages {
							cancel()
						}
						mu.Unlock()
					}
				}
			}
		})
	}
	workers.Wait()
	return t, nil
}

func healthyClient(i int) string { return fmt.Sprintf("healthy%d", i%healthyClients) }
