package probes_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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
		"/livez": "200", "/readyz": "503", "/healthz": "503 {}", "/": `503 {"error":"temporarily_unavailable",`,
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

// hanging is a part whose Healthy hangs until its context ends.
type hanging struct{ isAsked chan struct{} }

func (h hanging) Healthy(ctx context.Context) error {
	close(h.isAsked)
	<-ctx.Done()
	return ctx.Err()
}

// TestRequestEnds: if the request ends before a part could say how it is, the response isn't that all
// is well, and the log doesn't say that the part fails.
func TestRequestEnds(t *testing.T) {
	var log bytes.Buffer
	p := probes.New(slog.New(slog.NewTextHandler(&log, nil)))
	store := hanging{make(chan struct{})}
	p.Watch("store", store)
	p.Start(http.NotFoundHandler())
	ctx, end := context.WithCancel(t.Context())
	go func() { <-store.isAsked; end() }()
	w := httptest.NewRecorder()
	p.ServeHTTP(w, httptest.NewRequestWithContext(ctx, "GET", "/healthz", nil))
	if got, want := w.Result().Status[:3]+" "+w.Body.String(), "503 {\"store\":\"unknown\"}\n"; got != want || log.Len() > 0 {
		t.Errorf("got %q, want %q; logged %s", got, want, &log)
	}
}

// patient returns one result after the other. Then the process ends.
type patient struct {
	results []error
	end     func()
}

func (p *patient) Healthy(ctx context.Context) error {
	if len(p.results) == 0 {
		p.end()
		return ctx.Err()
	}
	result := p.results[0]
	p.results = p.results[1:]
	return result
}

// TestCheckEvery: even if nobody asks for /healthz, the log says once that a part fails, and why,
// and once that it works again. The end of the process says nothing about a part.
func TestCheckEvery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		p := probes.New(slog.New(slog.NewTextHandler(&log, nil)))
		ctx, end := context.WithCancel(t.Context())
		down := errors.New("a cause")
		p.Watch("store", &patient{[]error{nil, nil, down, down, down, nil, nil}, end})
		start := time.Now()
		p.CheckEvery(ctx, time.Minute)
		if got := time.Since(start); got != 8*time.Minute {
			t.Errorf("eight checks took %v", got)
		}
		const want = ` level=ERROR msg="not healthy" part=store error="a cause"
 level=INFO msg="healthy again" part=store
`
		if got := regexp.MustCompile(`(?m)^time=\S+`).ReplaceAllString(log.String(), ""); got != want {
			t.Errorf("logged %s", got)
		}
	})
}
