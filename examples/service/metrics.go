package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"example.com/go-webhookcfg/examples/mounts/metrics"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/deliver/outbox"
)

// register registers all metrics: of requests and deliveries, of the parts, of the queue and
// of the process.
func (s *service) register() (err error) {
	s.registry = prometheus.NewRegistry()
	if s.metrics, err = metrics.NewMetrics(s.registry); err != nil {
		return err
	}
	for name, part := range map[string]any{"store": s.database.webhooks, "copy": s.webhooks} {
		if err := s.metrics.Watch(name, part); err != nil {
			return err
		}
	}
	s.took = newTook()
	for _, c := range []prometheus.Collector{
		queueCollector{s.queue},
		s.took,
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	} {
		if err := s.registry.Register(c); err != nil {
			return err
		}
	}
	return nil
}

// logResult logs why the service itself couldn't make an attempt, since you can't see that
// anywhere else. If a receiver failed, the reason is kept with the job.
func (s *service) logResult(ctx context.Context, client, entity string, r deliver.Result) {
	if r.Reason == deliver.ReasonUnavailable {
		s.logger.WarnContext(ctx, "delivery deferred", "client", client, "entity", entity, "error", r.Err)
	}
}

// exposition returns the handler that serves the metrics. They name no client, but they're
// not public. If the queue can't be counted, you still get the other metrics.
func (s *service) exposition() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError,
		ErrorLog:      slog.NewLogLogger(s.logger.Handler(), slog.LevelError),
	}))
	return mux
}

// onEnd is the [outbox.Options.OnEnd].
func (s *service) onEnd(e outbox.End) {
	s.took.WithLabelValues(e.State.String()).Observe(e.Took.Seconds())
}

// newTook returns the times that notifications took.
func newTook() *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "service_notification_seconds",
		Help:    "Time from the change to the end of its notification, by how it ended.",
		Buckets: []float64{.01, .03, .1, .3, 1, 3, 10, 60, 600, 3600, 86400},
	}, []string{"state"})
}

// logOverdue logs at every interval which clients wait longest, if a notification has been due
// for that long.
func (s *service) logOverdue(ctx context.Context, interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		stats, err := s.queue.Stats(ctx)
		if err != nil {
			continue // the probe of the store says why
		}
		var behind []string
		for _, client := range stats.Clients {
			if client.Overdue >= interval {
				behind = append(behind, fmt.Sprintf("%q: %d, the first for %v", client.Client, client.Waiting, client.Overdue.Round(time.Second)))
			}
		}
		if len(behind) > 0 {
			s.logger.WarnContext(ctx, "notifications are overdue", "waiting", stats.Waiting, "clients", behind)
		}
	}
}

// queueCollector counts the notifications of all processes when Prometheus asks for them.
type queueCollector struct{ queue *outbox.Outbox }

var (
	queued = prometheus.NewDesc("service_queue_notifications",
		"Notifications of all processes, by state; a number stays at its bound.", []string{"state"}, nil)
	overdue = prometheus.NewDesc("service_queue_overdue_seconds",
		"How long the notification that waits longest has been due.", nil, nil)
	underWay = prometheus.NewDesc("service_queue_under_way",
		"Attempts of this process that are under way.", nil, nil)
	heldLines = prometheus.NewDesc("service_queue_clients",
		"Clients that this process has, and those that it is sending to.", []string{"state"}, nil)
)

// Describe implements [prometheus.Collector].
func (q queueCollector) Describe(descs chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{queued, overdue, underWay, heldLines} {
		descs <- desc
	}
}

// Collect implements [prometheus.Collector].
func (q queueCollector) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	stats, err := q.queue.Stats(ctx)
	if err != nil {
		to <- prometheus.NewInvalidMetric(queued, err)
		return
	}
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	gauge(queued, float64(stats.Waiting), "waiting")
	gauge(queued, float64(stats.Delivered), "delivered")
	gauge(queued, float64(stats.GivenUp), "given_up")
	gauge(queued, float64(stats.Dropped), "dropped")
	longest := time.Duration(0)
	for _, client := range stats.Clients {
		longest = max(longest, client.Overdue)
	}
	gauge(overdue, longest.Seconds())
	gauge(underWay, float64(stats.UnderWay))
	gauge(heldLines, float64(stats.Held), "held")
	gauge(heldLines, float64(stats.Active), "active")
}
