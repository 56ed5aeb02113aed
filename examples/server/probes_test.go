package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"
)

// part is healthy unless it has an error.
type part struct{ err error }

func (p *part) Healthy(context.Context) error { return p.err }

func TestProbes(t *testing.T) {
	var log bytes.Buffer
	store := new(part)
	p := newProbes(slog.New(slog.NewTextHandler(&log, nil)))
	p.watch("store", store)
	p.watch("clients", "a value without a method")
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
	p.start(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
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
	p.stop()
	want("stopping", map[string]string{"/livez": "200", "/readyz": "503", "/healthz": "200", "/": "418"})
}

// TestHealthOfProgram: the program watches its store and its credentials.
func TestHealthOfProgram(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil { // whatever the umask is
		t.Fatal(err)
	}
	s := start(t, "-credentials", writeCredentials(t), "-store", "file:"+dir+"/webhooks.jsonl")
	if got, want := s.call(t, "GET", "/healthz", "", ""), "200 {\"credentials\":\"ok\",\"store\":\"ok\"}\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if err := s.stop(); err != nil {
		t.Error(err)
	}
}

// TestDrain: after the end of the context, requests are served while the process is unready.
func TestDrain(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := newProbes(slog.New(slog.DiscardHandler))
	p.start(http.NotFoundHandler())
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- serve(ctx, listener, p, time.Hour, p.logger) }()
	get := func(path string) int {
		resp, err := http.Get("http://" + listener.Addr().String() + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		_, _ = io.Copy(io.Discard, resp.Body)
		return resp.StatusCode
	}
	if got := get("/readyz"); got != http.StatusOK {
		t.Errorf("before: got %d", got)
	}
	cancel()
	for tries := 0; get("/readyz") == http.StatusOK; tries++ {
		if tries == 10_000 {
			t.Fatal("still ready")
		}
	}
	if got := get("/"); got != http.StatusNotFound {
		t.Errorf("meanwhile: got %d", got)
	}
	if err := errors.Join(listener.Close(), <-served); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v", err)
	}
}
