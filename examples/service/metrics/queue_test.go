package metrics

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"example.com/go-webhookcfg/webhookcfg/deliver/outbox"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// fakeQueue has figures of a queue, or an error.
type fakeQueue struct {
	stats outbox.Stats
	err   error
}

func (q *fakeQueue) Stats(context.Context) (outbox.Stats, error) { return q.stats, q.err }

// TestQueue: the metrics have all figures of the queue, and no client. If it can't be read,
// one says so, and there are still the other metrics.
func TestQueue(t *testing.T) {
	q := &fakeQueue{stats: outbox.Stats{
		Waiting: 1, Delivered: 2, GivenUp: 3, Dropped: 4,
		Overdue: outbox.Overdue{New: time.Second, Retry: 2 * time.Second, Failing: 3 * time.Second},
		Clients: []outbox.ClientStats{{Client: secret}},
		Held:    5, Active: 6, UnderWay: 7, Changes: 8,
	}}
	registry := prometheus.NewRegistry()
	m, err := NewMetrics(registry)
	if err == nil {
		err = m.Watch("queue", q)
	}
	if err != nil {
		t.Fatal(err)
	}
	m.OnEnd(outbox.End{Client: secret, State: outbox.Delivered, Took: 20 * time.Millisecond})
	m.OnEnd(outbox.End{Client: secret, State: outbox.GivenUp, Took: time.Hour})
	exposition := serve(t, promhttp.HandlerFor(registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError}))
	want := []string{
		`webhook_queue_changes_total{part="queue"} 8`,
		`webhook_queue_clients{part="queue",state="active"} 6`,
		`webhook_queue_clients{part="queue",state="held"} 5`,
		`webhook_queue_notifications{part="queue",state="delivered"} 2`,
		`webhook_queue_notifications{part="queue",state="dropped"} 4`,
		`webhook_queue_notifications{part="queue",state="given_up"} 3`,
		`webhook_queue_notifications{part="queue",state="waiting"} 1`,
		`webhook_queue_overdue_seconds{part="queue",state="failing"} 3`,
		`webhook_queue_overdue_seconds{part="queue",state="new"} 1`,
		`webhook_queue_overdue_seconds{part="queue",state="retry"} 2`,
		`webhook_queue_readable{part="queue"} 1`,
		`webhook_queue_under_way{part="queue"} 7`,
	}
	if diff := cmp.Diff(want, scrape(t, exposition, "webhook_queue")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	took := func() string { return strings.Join(scrape(t, exposition, "webhook_notification_seconds"), "\n") }
	for _, line := range []string{`bucket{state="delivered",le="0.03"} 1`, `bucket{state="given_up",le="600"} 0`, `sum{state="given_up"} 3600`} {
		if !strings.Contains(took(), line) {
			t.Errorf("no %s in\n%s", line, took())
		}
	}
	q.err = errors.New("the database is down")
	if diff := cmp.Diff([]string{`webhook_queue_readable{part="queue"} 0`}, scrape(t, exposition, "webhook_queue")); diff != "" || took() == "" {
		t.Errorf("without the database: -want +got:\n%s, and %q", diff, took())
	}
}
