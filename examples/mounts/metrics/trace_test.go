package metrics

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"example.com/go-webhookcfg/webhookcfg"
	"github.com/go-chi/chi/v5"
	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

// telemetry is OpenTelemetry with exporters in memory.
type telemetry struct {
	spans  *tracetest.InMemoryExporter
	reader *metric.ManualReader
	wrap   func(h http.Handler) http.Handler
}

func newTelemetry() *telemetry {
	spans, reader := tracetest.NewInMemoryExporter(), metric.NewManualReader()
	tracers := trace.NewTracerProvider(trace.WithSyncer(spans))
	meters := metric.NewMeterProvider(metric.WithReader(reader))
	return &telemetry{spans, reader, func(h http.Handler) http.Handler {
		return otelhttp.NewHandler(h, "service", otelhttp.WithTracerProvider(tracers), otelhttp.WithMeterProvider(meters))
	}}
}

// routes returns the sorted values of http.route in the metrics.
func (tel *telemetry) routes(t testing.TB) (all []string) {
	t.Helper()
	for _, scope := range tel.collect(t).ScopeMetrics {
		for _, m := range scope.Metrics {
			if durations, ok := m.Data.(metricdata.Histogram[float64]); ok && m.Name == "http.server.request.duration" {
				for _, point := range durations.DataPoints {
					route, _ := point.Attributes.Value("http.route")
					all = append(all, route.AsString())
				}
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (tel *telemetry) collect(t testing.TB) (data metricdata.ResourceMetrics) {
	t.Helper()
	if err := tel.reader.Collect(context.Background(), &data); err != nil {
		t.Fatal(err)
	}
	return data
}

// TestRouteNames checks the name of a span, and the route in its attributes and in the
// metrics, for each place where the middleware can be. It reads the Pattern of the request
// that it passed on. If StripPrefix or chi copies the request, the middleware can't see the
// route.
func TestRouteNames(t *testing.T) {
	const route = configure + "/{endpoint_id}"
	const one = "DELETE " + route
	tests := []struct {
		name  string
		strip bool
		mount func(h *webhookcfg.Handler, tel *telemetry) http.Handler
		want  seen
	}{
		{"around Before", false, func(h *webhookcfg.Handler, tel *telemetry) http.Handler {
			return tel.wrap(h.Before(http.NewServeMux()))
		}, seen{one, "", route}},
		{"around a mux with Register", false, func(h *webhookcfg.Handler, tel *telemetry) http.Handler {
			mux := http.NewServeMux()
			h.Register(mux)
			return tel.wrap(mux)
		}, seen{one, "", route}},
		{"around a mux with a prefix", false, func(h *webhookcfg.Handler, tel *telemetry) http.Handler {
			mux := http.NewServeMux()
			mux.Handle("/hooks/", h)
			return tel.wrap(mux)
		}, seen{one, "", route}},
		{"around a mux that strips", true, func(h *webhookcfg.Handler, tel *telemetry) http.Handler {
			mux := http.NewServeMux()
			mux.Handle("/hooks/", http.StripPrefix("/hooks", h))
			return tel.wrap(mux)
		}, seen{"DELETE /hooks/", "", "/hooks/"}},
		{"around the handler alone, inside a mux", false, func(h *webhookcfg.Handler, tel *telemetry) http.Handler {
			mux := http.NewServeMux()
			mux.Handle("/hooks/", tel.wrap(h))
			return mux
		}, seen{one, "/hooks/", route}},
		{"around chi", false, func(h *webhookcfg.Handler, tel *telemetry) http.Handler {
			r := chi.NewRouter()
			r.Mount("/hooks", h)
			return tel.wrap(r)
		}, seen{"DELETE", "", ""}},
		{"around the handler alone, inside chi", false, func(h *webhookcfg.Handler, tel *telemetry) http.Handler {
			r := chi.NewRouter()
			r.Mount("/hooks", tel.wrap(h))
			return r
		}, seen{one, "/hooks/*", route}},
		{"around Before around chi", false, func(h *webhookcfg.Handler, tel *telemetry) http.Handler {
			return tel.wrap(h.Before(chi.NewRouter()))
		}, seen{one, "", route}},
	}
	for _, tt := range tests {
		tel := newTelemetry()
		h := newHandler(t, func(o *webhookcfg.Options) {
			if tt.strip {
				o.BasePath = ""
			}
		})
		get(t, "DELETE", serve(t, tt.mount(h, tel))+configure+"/e1")
		if diff := cmp.Diff(tt.want, tel.seen(t)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", tt.name, diff)
		}
	}
}

// seen is the telemetry of one request.
type seen struct{ Span, SpanRoute, MetricRoute string }

func (tel *telemetry) seen(t testing.TB) seen {
	t.Helper()
	spans, routes := tel.spans.GetSpans(), tel.routes(t)
	if len(spans) != 1 || len(routes) != 1 {
		t.Fatalf("%d spans, routes %q", len(spans), routes)
	}
	var route string
	for _, kv := range spans[0].Attributes {
		if kv.Key == attribute.Key("http.route") {
			route = kv.Value.AsString()
		}
	}
	return seen{spans[0].Name, route, routes[0]}
}

func get(t testing.TB, method, url string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.SetBasicAuth("acme", secret)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("%s %s: got %d", method, url, resp.StatusCode)
	}
}

// TestTelemetryKeepsSecrets: no telemetry contains a client's secret, or anything of a
// webhook URL after its port. It contains the path of the request, and so an entity, because
// otelhttp records that by itself.
func TestTelemetryKeepsSecrets(t *testing.T) {
	tel := newTelemetry()
	do(t, tel.wrap(newHandler(t, nil).Before(http.NewServeMux())))
	exported := fmt.Sprintf("%+v\n%+v", tel.spans.GetSpans(), tel.collect(t))
	for _, seen := range []string{"url.path", configure + "/e1", "http.route", configure + "/{endpoint_id}"} {
		if !strings.Contains(exported, seen) {
			t.Errorf("%s is not in what was exported", seen)
		}
	}
	if n := len(tel.spans.GetSpans()); leaks(exported) || n != len(outcomes) {
		t.Errorf("%d spans:\n%s", n, exported)
	}
}
