package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// unavailable is a store that can't be read.
type unavailable struct{}

func (unavailable) Resolve(context.Context, string, string) (webhookcfg.Webhook, error) {
	return webhookcfg.Webhook{}, errors.New("no connection")
}

// TestWorker: the result of a delivery decides what River does with the job.
func TestWorker(t *testing.T) {
	const delay = time.Hour
	for _, tt := range []struct {
		name    string
		status  int  // of the receiver; 0: there is no webhook
		broken  bool // the store can't be read
		id      string
		attempt int
		want    string
	}{
		{"delivered", http.StatusNoContent, false, "m1", 1, "completed"},
		{"no webhook", 0, false, "m1", 1, "completed"},
		{"failed", http.StatusInternalServerError, false, "m1", 1, "retried"},
		{"failed for the last time", http.StatusInternalServerError, false, "m1", 2, "cancelled"},
		{"gone", http.StatusGone, false, "m1", 1, "completed"},
		{"refused", http.StatusNoContent, false, "not an id", 1, "cancelled"},
		{"deferred", http.StatusNoContent, true, "m1", 1, "snoozed"},
		{"deferred after the last failure", http.StatusNoContent, true, "m1", 2, "snoozed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(tt.status)
			}))
			defer receiver.Close()
			webhooks := store.NewMemory()
			if tt.status != 0 {
				if err := webhooks.Apply(t.Context(), webhookcfg.SetChange("acme", webhookcfg.All(), egress.NewURL(receiver.URL))); err != nil {
					t.Fatal(err)
				}
			}
			var resolver deliver.Resolver = webhooks
			if tt.broken {
				resolver = unavailable{}
			}
			keys, err := deliver.DerivedKeys([]byte(master))
			if err != nil {
				t.Fatal(err)
			}
			sender, err := deliver.New(resolver, keys, &deliver.Options{Policy: egress.Development()})
			if err != nil {
				t.Fatal(err)
			}
			w := &worker{sender: sender, schedule: deliver.Schedule{delay}}
			job := &river.Job[notification]{
				JobRow: &rivertype.JobRow{Attempt: tt.attempt},
				Args:   notification{Client: "acme", Entity: "e1", Message: deliver.Message{ID: tt.id, Body: []byte("{}")}},
			}
			start := time.Now()
			if got := verdict(w.Work(t.Context(), job)); got != tt.want {
				t.Errorf("the job is %s, want %s", got, tt.want)
			}
			due := w.NextRetry(job).Sub(start)
			if later := due > delay/2; later != (tt.want == "retried") {
				t.Errorf("the next attempt is due after %v", due)
			}
		})
	}
}

// verdict returns what River does with a job whose worker returned err.
func verdict(err error) string {
	var snoozed *rivertype.JobSnoozeError
	var cancelled *rivertype.JobCancelError
	switch {
	case err == nil:
		return "completed"
	case errors.As(err, &snoozed):
		return "snoozed"
	case errors.As(err, &cancelled):
		return "cancelled"
	}
	return "retried"
}
