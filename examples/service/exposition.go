package main

import (
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// watch adds the figures of the parts and of the process to the metrics. Package metrics says which
// figures a part has.
func (s *service) watch() error {
	s.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for name, part := range map[string]any{"store": s.database.webhooks, "copy": s.webhooks, "queue": s.queue, "modules": s.database} {
		s.probes.Watch(name, part)
		if err := s.metrics.Watch(name, part); err != nil {
			return err
		}
	}
	return nil
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
