package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/examples/internal/probes"
	"example.com/go-webhookcfg/webhookcfg"
)

// TestSetDoesNotWaitForTheQueue: the response to a set doesn't wait until the queue knows of it,
// which it does soon.
func TestSetDoesNotWaitForTheQueue(t *testing.T) {
	s := idle(t, []string{"-store", newStore(t)})
	conn, err := s.database.Conn(t.Context()) // the only one
	if err != nil {
		t.Fatal(err)
	}
	const line = "INSERT INTO wh_outbox_line (client, owner, due) VALUES (CAST('acme' AS BLOB), 0, 1)"
	if _, err := conn.ExecContext(t.Context(), line); err != nil {
		t.Fatal(err)
	}
	s.onEvent(t.Context(), webhookcfg.Event{Operation: "set", Client: "acme", Scope: webhookcfg.All()})
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	await(t, func() (bool, string) {
		marks := 0
		err := s.database.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM wh_outbox_mark").Scan(&marks)
		return marks == 1, fmt.Sprint("the queue isn't told: ", err)
	})
}

// lines is a log that can be read while it's written.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// TestDevelopment: in a fresh directory, one command serves.
func TestDevelopment(t *testing.T) {
	store := "sqlite:" + filepath.Join(t.TempDir(), "service.db")
	service, _ := startWith(t, nothing, "-dev", "-store", store)
	added := strings.TrimSpace(mustPrint(t, store, "add", "acme"))
	expect(t, callAs(t, added, http.MethodGet, service+"/api/v1/signing-key", ""), `200 {"key":"whsec_`)
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
