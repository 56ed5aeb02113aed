package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"example.com/go-webhookcfg/examples/internal/probes"
)

// TestHealthOfProgram: the program watches its store and its credentials.
func TestHealthOfProgram(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil { // whatever the umask
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

// TestDrain: after ctx has ended, requests are still served, but the process is unready.
func TestDrain(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := probes.New(slog.New(slog.DiscardHandler))
	p.Start(http.NotFoundHandler())
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- serve(ctx, listener, p, time.Hour, slog.New(slog.DiscardHandler)) }()
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
