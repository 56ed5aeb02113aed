package metrics

import (
	"context"
	"time"

	"example.com/go-webhookcfg/webhookcfg/deliver/outbox"
	"github.com/prometheus/client_golang/prometheus"
)

// OnEnd counts notifications that ended, and how long they took. Set it as
// [outbox.Options.OnEnd].
func (m *Metrics) OnEnd(e outbox.End) {
	m.took.WithLabelValues(state(e.State)).Observe(e.Took.Seconds())
}

func state(s outbox.State) string {
	if s == outbox.GivenUp {
		return "given_up"
	}
	return s.String()
}

// queue is an [outbox.Outbox].
type queue interface {
	Stats(ctx context.Context) (outbox.Stats, error)
}

// queueCollector reads the figures of a queue when Prometheus asks for them. Those of the
// database are the same in all processes, so take their maximum, not their sum.
type queueCollector struct{ queue queue }

func queueDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("webhook_queue_"+name, help, labels, nil)
}

var (
	queueReadable      = queueDesc("readable", "Whether the figures of the queue could be read: 1 or 0. If it's 0, the others are missing.")
	queueNotifications = queueDesc("notifications", "Notifications in the database by state; the number stays at its bound, 10000.", "state")
	queueOverdue       = queueDesc("overdue_seconds", "How long the first waiting notification has been due: new, or a retry, or of a client with a failing webhook.", "state")
	queueClients       = queueDesc("clients", "Clients that this process has, and those that it's sending to.", "state")
	queueUnderWay      = queueDesc("under_way", "Attempts of this process that are under way.")
	queueChanges       = queueDesc("changes_total", "How often this process was told that a webhook has changed, or that notifications are sent again.")
)

// Describe implements [prometheus.Collector].
func (q queueCollector) Describe(descs chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{queueReadable, queueNotifications, queueOverdue, queueClients, queueUnderWay, queueChanges} {
		descs <- desc
	}
}

// Collect implements [prometheus.Collector].
func (q queueCollector) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	s, err := q.queue.Stats(ctx)
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	if err != nil { // no alert fires for what's missing, so say that it is
		gauge(queueReadable, 0)
		to <- prometheus.NewInvalidMetric(queueNotifications, err) // for the log of promhttp
		return
	}
	gauge(queueReadable, 1)
	for st, n := range map[outbox.State]int{outbox.Waiting: s.Waiting, outbox.Delivered: s.Delivered, outbox.GivenUp: s.GivenUp, outbox.Dropped: s.Dropped} {
		gauge(queueNotifications, float64(n), state(st))
	}
	gauge(queueOverdue, s.Overdue.New.Seconds(), "new")
	gauge(queueOverdue, s.Overdue.Retry.Seconds(), "retry")
	gauge(queueOverdue, s.Overdue.Failing.Seconds(), "failing")
	gauge(queueClients, float64(s.Held), "held")
	gauge(queueClients, float64(s.Active), "active")
	gauge(queueUnderWay, float64(s.UnderWay))
	to <- prometheus.MustNewConstMetric(queueChanges, prometheus.CounterValue, float64(s.Changes))
}
