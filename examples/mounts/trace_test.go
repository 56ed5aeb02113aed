package mounts

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"example.com/go-webhookcfg/store"
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
		o := options()
		if tt.strip {
			o.BasePath = ""
		}
		h := newHandler(t, store.NewMemory(), o)
		address := serve(t, tt.mount(h, tel))
		if got := raw(t, address, text("DELETE", configure+"/e1", "")); got.Status != http.StatusOK {
			t.Errorf("%s: got %d", tt.name, got.Status)
		}
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

// TestTelemetryKeepsSecrets: no telemetry contains a client's secret, or anything of a
// webhook URL after its port. It contains the path of the request, and so an entity, because
// otelhttp records that by itself.
func TestTelemetryKeepsSecrets(t *testing.T) {
	const secretURL = "https://hooks.example.com:8443/services/T0PSECRET?k=QU3RY"
	secrets := []string{secret, base64.StdEncoding.EncodeToString([]byte("acme:" + secret)), "T0PSECRET", "QU3RY"}
	set := func(entity, url string) string {
		return text("POST", configure, fmt.Sprintf(`{"endpoint_id":%q,"webhook_url":%q}`, entity, url))
	}
	requests := []struct {
		text   string
		status int
	}{
		{set("e1", secretURL), 200},
		{text("POST", configure, `{"webhook_url":"`+secretURL+`"}`), 200},
		{text("GET", configure+"/e1", ""), 200},
		{text("DELETE", configure+"/e1", ""), 200},
		{text("POST", configure, `{"webhook":"`+secretURL+`"}`), 400},
		{set("e1", "http"+strings.TrimPrefix(secretURL, "https")), 400},
		{strings.Replace(set("e1", secretURL), "Basic ", "Basic eDp5", 1), 401},
		{set("broken", secretURL), 500},
		{set("down", secretURL), 503},
		{text("DELETE", configure+"/e1/..", ""), 404},
		{text("PATCH", configure, ""), 405},
	}
	tel := newTelemetry()
	var underWay sync.WaitGroup // a response can arrive before its handler has returned
	h := tel.wrap(newHandler(t, faulty{store.NewMemory()}, options()).Before(http.NewServeMux()))
	address := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		underWay.Add(1)
		defer underWay.Done()
		h.ServeHTTP(w, r)
	}))
	for _, r := range requests {
		if got := raw(t, address, r.text); got.Status != r.status {
			t.Errorf("got %d, want %d for\n%s", got.Status, r.status, r.text)
		}
	}
	underWay.Wait()
	exported := fmt.Sprintf("%+v\n%+v", tel.spans.GetSpans(), tel.collect(t))
	for _, seen := range []string{"url.path", configure + "/e1", "http.route", configure + "/{endpoint_id}"} {
		if !strings.Contains(exported, seen) {
			t.Errorf("%s is not in what was exported", seen)
		}
	}
	leaks := slices.ContainsFunc(secrets, func(part string) bool { return strings.Contains(exported, part) })
	if n := len(tel.spans.GetSpans()); leaks || n != len(requests) {
		t.Errorf("%d spans:\n%s", n, exported)
	}
}

// faulty is a store that fails as the entity says, with the URL in its error.
type faulty struct{ *store.Memory }

func (f faulty) Apply(ctx context.Context, c webhookcfg.Change) error {
	switch c.Scope.Entity() {
	case "down":
		return fmt.Errorf("driver: bad value %q", c.URL.Reveal())
	case "broken":
		panic("driver: bad value " + c.URL.Reveal())
	}
	return f.Memory.Apply(ctx, c)
}
