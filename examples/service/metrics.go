package main

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"example.com/go-webhookcfg/examples/mounts/metrics"
	"example.com/go-webhookcfg/webhookcfg/deliver"
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
	for _, c := range []prometheus.Collector{
		queueCollector{s.database},
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

// queueCollector counts the notifications of all processes when Prometheus asks for them.
type queueCollector struct{ database *database }

var queued = prometheus.NewDesc("service_queue_notifications",
	"Notifications of all processes, by state; a number stays at its bound.", []string{"state"}, nil)

// Describe implements [prometheus.Collector].
func (q queueCollector) Describe(descs chan<- *prometheus.Desc) { descs <- queued }

// Collect implements [prometheus.Collector].
func (q queueCollector) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	c, err := q.database.counts(ctx)
	if err != nil {
		to <- prometheus.NewInvalidMetric(queued, err)
		return
	}
	for state, n := range map[string]int64{"waiting": c.Waiting, "under_way": c.UnderWay, "given_up": c.GivenUp} {
		to <- prometheus.MustNewConstMetric(queued, prometheus.GaugeValue, float64(n), state)
	}
}
