package main

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

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
		s := idle(t, []string{"-store", newStore(t)})
		s.logger = newLogger(&log)
		s.onResult(t.Context(), "acme", "e1", "m", deliver.Result{Outcome: deliver.Deferred, Reason: reason, Err: errors.New("no connection")})
		if logged := strings.Contains(log.String(), "no connection"); logged != want {
			t.Errorf("%s: logged %q", reason, &log)
		}
	}
}

// TestWarnings: the log says what to change about the database, and nothing if all is well.
func TestWarnings(t *testing.T) {
	var log bytes.Buffer
	logger := newLogger(&log)
	d, err := openDatabase(newStore(t), false, logger)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	for _, setting := range []string{"FULL", "OFF"} {
		if _, err := d.ExecContext(t.Context(), "PRAGMA synchronous = "+setting); err != nil {
			t.Fatal(err)
		}
		if err := d.ready(t.Context(), logger); err != nil {
			t.Fatal(err)
		}
		if got := log.String(); strings.Contains(got, "synchronous to FULL") != (setting == "OFF") || (got == "") != (setting == "FULL") {
			t.Errorf("%s: logged %q", setting, got)
		}
	}
}
