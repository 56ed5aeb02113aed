// Package metrics exports Prometheus metrics of the handler, of deliveries, of the queue and of
// the parts they need. You can import the package or copy it. alerts.yml has alert rules over these
// metrics. The tests also show metrics of middleware around the handler.
package metrics

import (
	"context"
	"strconv"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are the metrics of a service. Labels take only few values. They don't have clients,
// entities or URLs, each of which would make a time series. Metrics is safe for concurrent
// use.
type Metrics struct {
	registry prometheus.Registerer
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	results  *prometheus.CounterVec
	changes  *prometheus.CounterVec
	took     *prometheus.HistogramVec
}

// NewMetrics registers the metrics. It returns an error if one of them is registered already.
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
			Help: "Calls of the sender, by their result.",
		}, []string{"outcome", "reason"}),
		changes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "webhook_delivery_changes_total",
			Help: "Webhooks whose deliveries started to fail, stopped or recovered; each process counts those it uses.",
		}, []string{"state", "reason"}),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "webhook_notification_seconds",
			Help:    "Time from enqueueing a notification to its end, by how it ended.",
			Buckets: []float64{.01, .03, .1, .3, 1, 3, 10, 60, 600, 3600, 86400},
		}, []string{"state"}),
	}
	for _, c := range []prometheus.Collector{m.requests, m.duration, m.results, m.changes, m.took} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// OnEvent counts requests. Set it as [webhookcfg.Options.OnEvent].
func (m *Metrics) OnEvent(_ context.Context, e webhookcfg.Event) {
	m.requests.WithLabelValues(e.Operation, scope(e.Scope), strconv.Itoa(e.Status), e.Code).Inc()
	m.duration.WithLabelValues(e.Operation).Observe(e.Duration.Seconds())
}

// scope names the scope of a request without the entity.
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

// OnResult counts results. Set it as [deliver.Options.OnResult].
func (m *Metrics) OnResult(_ context.Context, _, _, _ string, r deliver.Result) {
	m.results.WithLabelValues(r.Outcome.String(), string(r.Reason)).Inc()
}

// OnChange counts changes of health. Set it as [deliver.HealthOptions.OnChange].
func (m *Metrics) OnChange(_ context.Context, _ string, _ webhookcfg.Scope, _, after webhookcfg.DeliveryStatus) {
	m.changes.WithLabelValues(after.State, after.Reason).Inc()
}
