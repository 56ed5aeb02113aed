package probes_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"example.com/go-webhookcfg/examples/internal/probes"
)

// part is healthy unless it has an error.
type part struct{ err error }

func (p *part) Healthy(context.Context) error { return p.err }

func TestProbes(t *testing.T) {
	var log bytes.Buffer
	store := new(part)
	p := probes.New(slog.New(slog.NewTextHandler(&log, nil)))
	p.Watch("store", store)
	p.Watch("clients", "a value without a method")
	want := func(when string, responses map[string]string) {
		t.Helper()
		for path, want := range responses {
			w := httptest.NewRecorder()
			p.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
			if got := w.Result().Status[:3] + " " + w.Body.String(); !strings.HasPrefix(got, want) {
				t.Errorf("%s: GET %s: got %q, want %q", when, path, got, want)
			}
		}
	}
	want("before the start", map[string]string{
		"/livez": "200", "/readyz": "503", "/healthz": "200 {}", "/": `503 {"error":"temporarily_unavailable",`,
	})
	p.Start(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	works := map[string]string{"/livez": "200", "/readyz": "200", "/healthz": "200 {\"store\":\"ok\"}\n", "/": "418", "/livez/": "418"}
	want("started", works)
	store.err = errors.New("a cause")
	for range 2 {
		want("failing", map[string]string{"/livez": "200", "/readyz": "200", "/healthz": "503 {\"store\":\"failing\"}\n", "/": "418"})
	}
	store.err = nil
	want("working again", works)
	want("working still", works)
	if strings.Count(log.String(), "\n") != 2 || !strings.Contains(log.String(), `level=ERROR msg="not healthy" part=store error="a cause"`) ||
		!strings.Contains(log.String(), `level=INFO msg="healthy again" part=store`) {
		t.Errorf("log:\n%s", &log)
	}
	p.Stop()
	want("stopping", map[string]string{"/livez": "200", "/readyz": "503", "/healthz": "200", "/": "418"})
}
