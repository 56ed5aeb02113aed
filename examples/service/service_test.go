package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/examples/internal/probes"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// TestWarm: after a start, the copy answers for an entity that nobody has asked for.
func TestWarm(t *testing.T) {
	s := idle(t, []string{"-store", "sqlite:" + filepath.Join(t.TempDir(), "service.db")})
	if err := s.readAhead(t.Context()); err == nil {
		t.Error("read a database without tables")
	}
	if err := s.database.migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		change := webhookcfg.SetChange(fmt.Sprint("client-", i), webhookcfg.All(), egress.NewURL("https://example.com/"))
		if err := s.database.webhooks.Apply(t.Context(), change); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.readAhead(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if _, err := s.webhooks.Resolve(t.Context(), fmt.Sprint("client-", i), "never seen"); err != nil {
			t.Error(err)
		}
	}
	if stats := s.webhooks.Stats(); stats.Hits != 3 || stats.Misses != 0 {
		t.Errorf("%d hits, %d misses", stats.Hits, stats.Misses)
	}
}

// TestDrained: after SIGTERM the process is unready at once, and ends after the time that
// load balancers need to notice.
func TestDrained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{cfg: config{drain: time.Minute}, probes: probes.New(slog.New(slog.DiscardHandler))}
		s.probes.Start(http.NotFoundHandler())
		ready := func() bool {
			w := httptest.NewRecorder()
			s.probes.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/readyz", nil))
			return w.Code == http.StatusOK
		}
		terminated, terminate := context.WithCancel(t.Context())
		ctx, end := s.drained(terminated)
		defer end()
		for _, step := range []struct {
			do           func()
			ready, ended bool
		}{
			{func() { time.Sleep(time.Hour) }, true, false},
			{terminate, false, false},
			{func() { time.Sleep(time.Minute - 1) }, false, false},
			{func() { time.Sleep(time.Nanosecond) }, false, true},
		} {
			step.do()
			synctest.Wait()
			if ready() != step.ready || (ctx.Err() != nil) != step.ended {
				t.Errorf("ready %v, ended %v, want %+v", ready(), ctx.Err(), step)
			}
		}
	})
}
