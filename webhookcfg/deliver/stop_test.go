package deliver_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/store/cache"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// TestStop: after a 410 nothing is sent until the client sets the webhook again. The same URL gets one
// attempt, and what the client reads follows.
func TestStop(t *testing.T) {
	code := http.StatusGone
	r := newReceiver(t, false, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) })
	health, err := deliver.NewHealth(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	st := store.NewMemory()
	setAt := func(at time.Time, path string) {
		t.Helper()
		change := webhookcfg.SetChange("acme", webhookcfg.All(), egress.NewURL(r.URL+path))
		change.Time = at
		if err := st.Apply(t.Context(), change); err != nil {
			t.Fatal(err)
		}
	}
	var seen []deliver.Reason
	s := newSender(t, st, keyring{deliver.GenerateKey()}, &deliver.Options{
		Health:   health,
		OnResult: func(_ context.Context, _, _, _ string, r deliver.Result) { seen = append(seen, r.Reason) },
	})
	state := func() string {
		t.Helper()
		hook, err := st.Resolve(t.Context(), "acme", "e1")
		if err != nil {
			t.Fatal(err)
		}
		d, err := health.Status(t.Context(), "acme", "e1", hook)
		if err != nil {
			t.Fatal(err)
		}
		return d.State + " " + d.Reason
	}

	setAt(time.Now().Add(-time.Hour), secretPath)
	check(t, "gone", s.Send(t.Context(), "acme", "e1", message), deliver.Undeliverable, deliver.ReasonGone)
	result := s.Send(t.Context(), "acme", "e2", message) // the base, by way of another entity
	check(t, "stopped", result, deliver.Undeliverable, deliver.ReasonStopped)
	if text := fmt.Sprint(result.Err); text != "deliver: webhook was stopped: gone" {
		t.Errorf("stopped: %s", text)
	}
	if got := state(); len(r.received()) != 1 || result.Webhook.URL.IsZero() || got != "stopped gone" {
		t.Errorf("%d requests, webhook %v, state %q", len(r.received()), result.Webhook, got)
	}

	code = http.StatusNotFound
	setAt(time.Now().Add(-time.Minute), secretPath)
	check(t, "set again", s.Send(t.Context(), "acme", "e1", message), deliver.Failed, deliver.ReasonStatus)
	check(t, "still stopped", s.Send(t.Context(), "acme", "e1", message), deliver.Undeliverable, deliver.ReasonStopped)
	if got := state(); got != "stopped gone" {
		t.Errorf("state %q", got)
	}
	setAt(time.Now().Add(-time.Second), "/other")
	check(t, "another URL", s.Send(t.Context(), "acme", "e1", message), deliver.Failed, deliver.ReasonStatus)
	if got := state(); got != "failing status" {
		t.Errorf("state %q", got)
	}
	code = http.StatusOK
	check(t, "recovered", s.Send(t.Context(), "acme", "e1", message), deliver.Delivered, "")
	if got := state(); got != "ok " {
		t.Errorf("state %q", got)
	}
	if want := []deliver.Reason{deliver.ReasonGone, deliver.ReasonStopped, deliver.ReasonStatus, deliver.ReasonStopped, deliver.ReasonStatus, ""}; !slices.Equal(seen, want) {
		t.Errorf("OnResult got %v, want %v", seen, want)
	}
}

// TestStopThroughCache: the 410 of a webhook that a stale copy still has does not stop the one
// that the client set since, not even in the same second.
func TestStopThroughCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		called := map[string]int{}
		receive := dialTo(func(conn net.Conn) {
			defer func() { _ = conn.Close() }()
			req, err := http.ReadRequest(bufio.NewReader(conn))
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, req.Body)
			code := http.StatusGone
			if req.URL.Path == "/new" {
				code = http.StatusNoContent
			}
			called[req.URL.Path]++
			fmt.Fprintf(conn, "HTTP/1.1 %d x\r\nConnection: close\r\n\r\n", code)
		})
		// A store of the host's own, which reports no changes.
		st := struct{ webhookcfg.Store }{store.NewMemory()}
		stale, err := cache.New(st, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer stale.Close()
		p := policyInMemory(receive)
		s := newSender(t, stale, keyring{deliver.GenerateKey()}, &deliver.Options{Policy: p, Health: newHealth(t, nil, nil)})
		h := hooktest.NewHandler(t, st, acmeOnly{}, &webhookcfg.Options{Policy: p, ProbeMode: webhookcfg.ProbeOff}) // of another process
		set := func(path string) {
			t.Helper()
			if err := h.Set(t.Context(), "acme", webhookcfg.Entity("e1"), "http://example.com"+path); err != nil {
				t.Fatal(err)
			}
		}
		set("/old")
		if _, err := stale.Resolve(t.Context(), "acme", "e1"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond) // the time starts with a whole second
		set("/new")
		check(t, "old", s.Send(t.Context(), "acme", "e1", message), deliver.Undeliverable, deliver.ReasonGone)
		time.Sleep(3 * time.Second)
		check(t, "new", s.Send(t.Context(), "acme", "e1", message), deliver.Delivered, "")
		if called["/old"] != 1 || called["/new"] != 1 {
			t.Errorf("calls: %v", called)
		}
	})
}

// TestNilHealth: a nil Health is off, also for the handler.
func TestNilHealth(t *testing.T) {
	var health *deliver.Health
	r := newReceiver(t, false, status(http.StatusGone))
	st := configured(t, r.URL)
	s := newSender(t, st, keyring{deliver.GenerateKey()}, &deliver.Options{Health: health})
	for range 2 {
		check(t, "gone", s.Send(t.Context(), "acme", "e1", message), deliver.Undeliverable, deliver.ReasonGone)
	}
	hook, err := st.Resolve(t.Context(), "acme", "e1")
	if err != nil {
		t.Fatal(err)
	}
	show := health.Status
	if d, err := show(t.Context(), "acme", "e1", hook); d != (webhookcfg.DeliveryStatus{}) || err != nil {
		t.Errorf("%+v, %v", d, err)
	}
	h := hooktest.NewHandler(t, st, acmeOnly{}, &webhookcfg.Options{Reads: true, DeliveryStatus: health.Status})
	w, read := httptest.NewRecorder(), httptest.NewRequest("GET", "/api/v1/configure/configure-webhook/e1", nil)
	read.SetBasicAuth("acme", "s3cret")
	h.ServeHTTP(w, read)
	if w.Code != http.StatusOK || strings.Contains(w.Body.String(), "delivery") {
		t.Errorf("read: %d %s", w.Code, w.Body)
	}
}

// TestRefusedIsNotStopped: the policy decides at each attempt, and what the host cannot
// provide is not shown to the client.
func TestRefusedIsNotStopped(t *testing.T) {
	health, err := deliver.NewHealth(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := newReceiver(t, false, status(200))
	st, keys := configured(t, r.URL+secretPath), keyring{deliver.GenerateKey()}
	hook, _ := st.Resolve(t.Context(), "acme", "e1")
	state := func() string {
		d, err := health.Status(t.Context(), "acme", "e1", hook)
		if err != nil {
			t.Fatal(err)
		}
		return d.State
	}
	broken := keysFunc(func(context.Context, deliver.Recipient) ([]deliver.Key, error) { return nil, errors.New("no keys") })
	s := newSender(t, st, broken, &deliver.Options{Health: health})
	check(t, "keys", s.Send(t.Context(), "acme", "e1", message), deliver.Deferred, deliver.ReasonUnavailable)
	if got := state(); got != "" {
		t.Errorf("state %q", got)
	}
	strict := newSender(t, st, keys, &deliver.Options{Health: health, Policy: &egress.Policy{AllowHTTP: true}})
	for range 2 {
		check(t, "strict", strict.Send(t.Context(), "acme", "e1", message), deliver.Undeliverable, deliver.ReasonPolicy)
	}
	if got := state(); got != "stopped" {
		t.Errorf("state %q", got)
	}
	allowed := newSender(t, st, keys, &deliver.Options{Health: health})
	check(t, "allowed", allowed.Send(t.Context(), "acme", "e1", message), deliver.Delivered, "")
}
