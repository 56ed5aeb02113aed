package main

import (
	"bytes"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/deliver/delivertest"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// TestRepair: a test gets a stopped base going again, at most once in ten seconds, and the log
// has both changes.
func TestRepair(t *testing.T) {
	var log bytes.Buffer
	s := idle(t, []string{"-dev", "-store", newStore(t)})
	receiver := delivertest.NewReceiver(t, s.keys, "acme")
	receiver.Fail(http.StatusGone)
	s.logger = newLogger(&log)
	change := webhookcfg.SetChange("acme", webhookcfg.All(), egress.NewURL(receiver.URL()))
	change.Time = time.Now()
	if err := s.webhooks.Store().Apply(t.Context(), change); err != nil {
		t.Fatal(err)
	}
	send := func() deliver.Reason {
		return s.sender.Send(t.Context(), "acme", "e1", deliver.Message{ID: "m"}).Reason
	}
	if first, second := send(), send(); first != deliver.ReasonGone || second != deliver.ReasonStopped {
		t.Fatalf("before the test: %q, %q", first, second)
	}
	receiver.Recover()
	test := s.sender.Tester(testMessage)
	if reason, err := test(t.Context(), "acme", ""); reason != "" || err != nil {
		t.Errorf("test of the base: %q, %v", reason, err)
	}
	if reason := send(); reason != "" {
		t.Errorf("after the test: %q", reason)
	}
	_, err := test(t.Context(), "acme", "e1")
	var soon interface{ RetryAfter() time.Duration }
	if !errors.As(err, &soon) || soon.RetryAfter() <= 0 || soon.RetryAfter() > 10*time.Second {
		t.Errorf("a second test: %v", err)
	}
	if _, err := test(t.Context(), "nobody", "e1"); err == nil {
		t.Error("tested nothing")
	}
	if text := log.String(); strings.Count(text, "after=stopped") != 1 || strings.Count(text, "after=ok") != 1 {
		t.Errorf("log: %s", text)
	}
}

// TestRepairFails: if a test fails, the client sees a word that says why.
func TestRepairFails(t *testing.T) {
	s := idle(t, []string{"-dev", "-store", newStore(t)})
	receiver := delivertest.NewReceiver(t, s.keys, "acme")
	receiver.Fail(http.StatusTeapot)
	if err := s.webhooks.Store().Apply(t.Context(), webhookcfg.SetChange("acme", webhookcfg.All(), egress.NewURL(receiver.URL()))); err != nil {
		t.Fatal(err)
	}
	if reason, err := s.sender.Tester(testMessage)(t.Context(), "acme", "e1"); reason != "status" || err != nil {
		t.Errorf("%q, %v", reason, err)
	}
}
