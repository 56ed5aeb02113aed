// Package metrics exports metrics of the handler, and tests metrics and traces of
// middleware around it. It is compiled and tested; a host copies the parts it needs
// rather than import it.
package metrics

import (
	"context"
	"errors"
	"strconv"

	"example.com/go-webhookcfg/webhookcfg"
	"github.com/prometheus/client_golang/prometheus"
)

// Metrics turns the events of a handler into Prometheus metrics. Their labels take
// few values: no client, entity or URL, each of which would make a time series.
// It is safe for concurrent use.
type Metrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
}

// NewMetrics registers the metrics. It returns an error if one is already registered.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "webhook_configuration_requests_total",
			Help: "Requests that reached an operation, by what they asked for and how they ended.",
		}, []string{"operation", "scope", "status", "code"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "webhook_configuration_duration_seconds",
			Help: "Time from the arrival of a request to its response.",
		}, []string{"operation"}),
	}
	return m, errors.Join(registry.Register(m.requests), registry.Register(m.duration))
}

// OnEvent is for [webhookcfg.Options.OnEvent].
func (m *Metrics) OnEvent(_ context.Context, e webhookcfg.Event) {
	m.requests.WithLabelValues(e.Operation, scope(e.Scope), strconv.Itoa(e.Status), e.Code).Inc()
	m.duration.WithLabelValues(e.Operation).Observe(e.Duration.Seconds())
}

// scope names the reach of a request without the entity.
func scope(s webhookcfg.Scope) string {
	switch {
	case s.IsAll():
		return "all"
	case s.Entity() != "":
		return "entity"
	default:
		return ""
	}
}
