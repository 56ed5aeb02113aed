package main

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/go-webhookcfg/webhookcfg/deliver"
)

// TestLoggedFailures: the log says why the service fails, but not that clients disconnect.
func TestLoggedFailures(t *testing.T) {
	disconnected, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tt := range []struct {
		ctx    context.Context
		logged bool
	}{{t.Context(), true}, {disconnected, false}} {
		var log bytes.Buffer
		s := idle(t, []string{"-store", "postgres://app@127.0.0.1:1/app"})
		s.logger = newLogger(&log)
		r := httptest.NewRequestWithContext(tt.ctx, http.MethodPut, "/api/v1/modules/e1", strings.NewReader("on"))
		r.SetPathValue("id", "e1")
		w := httptest.NewRecorder()
		s.putModule(w, r, "acme")
		if logged := strings.Contains(log.String(), "connection refused"); logged != tt.logged || w.Code != http.StatusServiceUnavailable {
			t.Errorf("context %v: status %d, logged %s", tt.ctx.Err(), w.Code, &log)
		}
	}
}

// TestLoggedResults: the log says why the service couldn't make an attempt. It leaves out
// limits, since they're reached too often, and failures of receivers, since these are kept
// with the job.
func TestLoggedResults(t *testing.T) {
	for reason, want := range map[deliver.Reason]bool{
		deliver.ReasonUnavailable: true,
		deliver.ReasonBusy:        false,
		deliver.ReasonPaused:      false,
	} {
		var log bytes.Buffer
		s := &service{logger: newLogger(&log)}
		s.logResult(t.Context(), "acme", "e1", deliver.Result{Outcome: deliver.Deferred, Reason: reason, Err: errors.New("no connection")})
		if logged := strings.Contains(log.String(), "no connection"); logged != want {
			t.Errorf("%s: logged %q", reason, &log)
		}
	}
}

// TestWarnings: the log says what to change about the database, and nothing if all is well.
func TestWarnings(t *testing.T) {
	var log bytes.Buffer
	logger := newLogger(&log)
	d, err := openDatabase("sqlite:"+filepath.Join(t.TempDir(), "service.db"), newLogger(&log))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	for _, tt := range []struct {
		prepare func() error
		want    string
	}{
		{func() error { return nil }, "Migrate"},
		{func() error { return d.webhooks.Migrate(t.Context()) }, ""},
		{func() error { _, err := d.ExecContext(t.Context(), "PRAGMA synchronous = OFF"); return err }, "synchronous to FULL"},
	} {
		if err := tt.prepare(); err != nil {
			t.Fatal(err)
		}
		log.Reset()
		d.warn(t.Context(), logger)
		if got := log.String(); !strings.Contains(got, tt.want) || (got == "") != (tt.want == "") {
			t.Errorf("logged %q, want %q", got, tt.want)
		}
	}
}

// TestLogOverdue: the log names the clients whose notifications have been due for an interval.
func TestLogOverdue(t *testing.T) {
	var log lines
	s := idle(t, []string{"-store", newStore(t)})
	s.logger = newLogger(&log)
	for _, client := range []string{"acme", "other"} {
		if _, err := s.update(t.Context(), module{client, "e1", "on"}); err != nil {
			t.Fatal(err)
		}
	}
	const later = "UPDATE wh_outbox_message SET enqueued = enqueued + 60000000 WHERE client = CAST('other' AS BLOB)"
	if _, err := s.database.ExecContext(t.Context(), later); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); s.logOverdue(ctx, 10*time.Millisecond) }()
	await(t, func() (bool, string) { return strings.Contains(log.String(), "overdue"), "nothing is logged" })
	cancel()
	<-ended
	if text := log.String(); !strings.Contains(text, "acme") || strings.Contains(text, "other") {
		t.Errorf("logged %s", text)
	}
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
