// Package metrics exports metrics of the handler, of deliveries and of what they need, and
// tests metrics and traces of middleware around the handler. alerts.yml has alert rules over
// these metrics. You can import the package or copy it.
package metrics

import (
	"context"
	"strconv"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are the metrics of a service. Their labels take few values: no client, entity or
// URL, each of which would make a time series. It is safe for concurrent use.
type Metrics struct {
	registry prometheus.Registerer
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	results  *prometheus.CounterVec
	changes  *prometheus.CounterVec
}

// NewMetrics registers the metrics. It returns an error if one is already registered.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		registry: registry,
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "webhook_configuration_requests_total",
			Help: "Requests that reached an operation, by what they asked for and how they ended.",
		}, []string{"operation", "scope", "status", "code"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "webhook_configuration_duration_seconds",
			Help: "Time from the arrival of a request to its response.",
		}, []string{"operation"}),
		results: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "webhook_delivery_results_total",
			Help: "What became of messages that were to be delivered, by attempt.",
		}, []string{"outcome", "reason"}),
		changes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "webhook_delivery_changes_total",
			Help: "Webhooks whose deliveries started to fail, stopped or recovered; each process counts those it uses.",
		}, []string{"state", "reason"}),
	}
	for _, c := range []prometheus.Collector{m.requests, m.duration, m.results, m.changes} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
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

// OnResult is for [deliver.Options.OnResult].
func (m *Metrics) OnResult(_ context.Context, _, _, _ string, r deliver.Result) {
	m.results.WithLabelValues(r.Outcome.String(), string(r.Reason)).Inc()
}

// OnChange is for [deliver.HealthOptions.OnChange].
func (m *Metrics) OnChange(_ context.Context, _ string, _ webhookcfg.Scope, _, after webhookcfg.DeliveryStatus) {
	m.changes.WithLabelValues(after.State, after.Reason).Inc()
}
