package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
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

// TestHold: a worker of an overflow keeps a notification for a busy receiver for a while, but
// not beyond its turn, before it defers it. A worker of a shard doesn't, because others wait
// for it.
func TestHold(t *testing.T) {
	arrived, release := make(chan struct{}), make(chan struct{})
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(arrived)
		<-release
	}))
	defer receiver.Close()
	webhooks := store.NewMemory()
	if err := webhooks.Apply(t.Context(), webhookcfg.SetChange("acme", webhookcfg.All(), egress.NewURL(receiver.URL))); err != nil {
		t.Fatal(err)
	}
	keys, err := deliver.DerivedKeys([]byte(master))
	if err != nil {
		t.Fatal(err)
	}
	sender, err := deliver.New(webhooks, keys, &deliver.Options{Policy: egress.Development(), PerReceiver: 1, Patience: -1})
	if err != nil {
		t.Fatal(err)
	}
	message := deliver.Message{ID: "m1", Body: []byte("{}")}
	var first sync.WaitGroup
	first.Go(func() { sender.Send(t.Context(), "acme", "e1", message) })
	defer first.Wait()
	defer close(release)
	<-arrived
	w := &worker{sender: sender, schedule: deliver.Schedule{time.Hour}, hold: time.Hour}
	work := func(ctx context.Context, queue string) {
		t.Helper()
		job := &river.Job[notification]{
			JobRow: &rivertype.JobRow{Attempt: 1, Queue: queue},
			Args:   notification{Client: "acme", Entity: "e1", Message: message},
		}
		if got := verdict(w.Work(ctx, job)); got != "snoozed" {
			t.Errorf("the job in %s is %s", queue, got)
		}
	}
	for range 20 { // so that the next turn is a while away
		work(t.Context(), queueOf("acme", 0, 1))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	work(ctx, queueOf("acme", 1, 1))
	if ctx.Err() == nil {
		t.Error("a notification in an overflow was deferred at once")
	}
	w.hold = time.Microsecond
	work(t.Context(), queueOf("acme", 1, 1))
	w.hold = time.Hour
	work(t.Context(), queueOf("acme", 1, 1))
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
