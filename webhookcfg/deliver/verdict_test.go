package deliver_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

func TestStatuses(t *testing.T) {
	var code int
	r := newReceiver(t, false, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "/elsewhere")
		if code == 299 {
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(http.StatusProcessing)
		}
		w.WriteHeader(code)
	})
	sent := 0
	for _, tt := range []struct {
		outcome deliver.Outcome
		reason  deliver.Reason
		codes   []int
	}{
		{deliver.Delivered, "", []int{200, 201, 202, 204, 205, 299}},
		{deliver.Failed, deliver.ReasonRedirect, []int{300, 301, 302, 303, 304, 307, 308, 399}},
		{deliver.Failed, deliver.ReasonStatus, []int{400, 401, 403, 404, 408, 409, 411, 418, 425, 499, 500, 501, 505, 599, 600, 999}},
		{deliver.Failed, deliver.ReasonThrottled, []int{429, 502, 503, 504}},
		{deliver.Undeliverable, deliver.ReasonGone, []int{410}},
		{deliver.Undeliverable, deliver.ReasonStatus, []int{413}},
	} {
		for _, code = range tt.codes {
			sent++
			s := newSender(t, configured(t, r.URL+secretPath), keyring{deliver.GenerateKey()}, nil) // its receiver is not paused
			result := s.Send(t.Context(), "acme", "e1", message)
			check(t, strconv.Itoa(code), result, tt.outcome, tt.reason)
			if result.Status != code || !result.Webhook.URL.Equal(egress.NewURL(r.URL+secretPath)) {
				t.Errorf("%d: status %d, webhook %v", code, result.Status, result.Webhook)
			}
			if result.Err != nil && !strings.Contains(result.Err.Error(), strconv.Itoa(code)) {
				t.Errorf("%d: error %v", code, result.Err)
			}
		}
	}
	if got := r.received(); len(got) != sent {
		t.Errorf("%d requests for %d messages: a redirect was followed", len(got), sent)
	}
}

// TestTooLargeForReceiver: a 413 is about one message. It doesn't pause the webhook, however
// often it comes, but the client sees that something wasn't delivered.
func TestTooLargeForReceiver(t *testing.T) {
	r := newReceiver(t, false, func(w http.ResponseWriter, req *http.Request) {
		if req.ContentLength > 100 {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
		}
	})
	st := store.NewMemory()
	setNow(t, st, webhookcfg.All(), r.URL)
	health, err := deliver.NewHealth(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
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
	s := newSender(t, st, keyring{deliver.GenerateKey()}, &deliver.Options{Health: health})
	for range 10 {
		check(t, "large", s.Send(t.Context(), "acme", "e1", deliver.Message{ID: "m", Body: make([]byte, 101)}), deliver.Undeliverable, deliver.ReasonStatus)
	}
	if got := state(); got != "failing status" {
		t.Errorf("state %q", got)
	}
	check(t, "small", s.Send(t.Context(), "acme", "e1", message), deliver.Delivered, "")
	if got := state(); got != "ok " {
		t.Errorf("state %q", got)
	}
}
