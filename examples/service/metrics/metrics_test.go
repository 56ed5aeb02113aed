package metrics

import (
	"bytes"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"example.com/go-webhookcfg/webhookcfg"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// TestMetrics scrapes the metrics after every outcome.
func TestMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	metrics, err := NewMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	h := newHandler(t, func(o *webhookcfg.Options) { o.OnEvent = metrics.OnEvent })
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	server := do(t, h.Before(mux))
	golden(t, "metrics.txt", scrape(t, server+"/metrics", "webhook_configuration_requests_total"))
	want := []string{
		`webhook_configuration_duration_seconds_count{operation="list"} 1`,
		`webhook_configuration_duration_seconds_count{operation="read"} 1`,
		`webhook_configuration_duration_seconds_count{operation="set"} 10`,
		`webhook_configuration_duration_seconds_count{operation="unset"} 6`,
	}
	if diff := cmp.Diff(want, scrape(t, server+"/metrics", "webhook_configuration_duration_seconds_count")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestMetricsTwice(t *testing.T) {
	registry := prometheus.NewRegistry()
	if _, err := NewMetrics(registry); err != nil {
		t.Fatal(err)
	}
	if _, err := NewMetrics(registry); err == nil {
		t.Error("registered twice")
	}
}

// TestInstrumentHandler: the middleware of client_golang wraps the handler and sees
// statuses and methods; only OnEvent reports the operation.
func TestInstrumentHandler(t *testing.T) {
	registry := prometheus.NewRegistry()
	requests := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "http_requests_total"}, []string{"code", "method"})
	registry.MustRegister(requests)
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	h := newHandler(t, nil)
	server := do(t, promhttp.InstrumentHandlerCounter(requests, h.Before(mux)))
	golden(t, "http.txt", scrape(t, server+"/metrics", "http_requests_total"))
}

// TestLog compares the log records of every outcome with testdata/log.jsonl, except for
// attributes that differ from run to run. A request that reached no operation has no record.
func TestLog(t *testing.T) {
	var out, whole bytes.Buffer
	steady := func(_ []string, a slog.Attr) slog.Attr {
		switch a.Key {
		case slog.TimeKey, "duration":
			return slog.Attr{}
		case "stack":
			return slog.String("stack", a.Value.String()[:len("goroutine")])
		}
		return a
	}
	golds := slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: steady})
	all := slog.NewJSONHandler(&whole, &slog.HandlerOptions{Level: slog.LevelDebug})
	h := newHandler(t, func(o *webhookcfg.Options) { o.Logger = slog.New(slog.NewMultiHandler(golds, all)) })
	do(t, h)
	golden(t, "log.jsonl", strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n"))
	if leaks(whole.String()) {
		t.Errorf("the log leaks:\n%s", &whole)
	}
}
