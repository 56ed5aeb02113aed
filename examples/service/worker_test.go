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

// webhookAt returns a store with a webhook for all of acme's entities.
func webhookAt(t *testing.T, url string) *store.Memory {
	t.Helper()
	webhooks := store.NewMemory()
	if err := webhooks.Apply(t.Context(), webhookcfg.SetChange("acme", webhookcfg.All(), egress.NewURL(url))); err != nil {
		t.Fatal(err)
	}
	return webhooks
}

// newSender returns a sender that can reach loopback.
func newSender(t *testing.T, webhooks deliver.Resolver, o *deliver.Options) *deliver.Sender {
	t.Helper()
	keys, err := deliver.DerivedKeys([]byte(master))
	if err != nil {
		t.Fatal(err)
	}
	o.Policy = egress.Development()
	sender, err := deliver.New(webhooks, keys, o)
	if err != nil {
		t.Fatal(err)
	}
	return sender
}

// newJob returns a job for a notification about acme's e1.
func newJob(id string, attempt int, queue string) *river.Job[notification] {
	return &river.Job[notification]{
		JobRow: &rivertype.JobRow{Attempt: attempt, Queue: queue},
		Args:   notification{Client: "acme", Entity: "e1", Message: deliver.Message{ID: id, Body: []byte("{}")}},
	}
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
			var webhooks deliver.Resolver = store.NewMemory()
			switch {
			case tt.broken:
				webhooks = unavailable{}
			case tt.status != 0:
				webhooks = webhookAt(t, receiver.URL)
			}
			w := &worker{sender: newSender(t, webhooks, &deliver.Options{}), schedule: deliver.Schedule{delay}}
			job := newJob(tt.id, tt.attempt, "")
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
	sender := newSender(t, webhookAt(t, receiver.URL), &deliver.Options{PerReceiver: 1, Patience: -1})
	var first sync.WaitGroup
	first.Go(func() { sender.Send(t.Context(), "acme", "e1", newJob("m1", 1, "").Args.Message) })
	defer first.Wait()
	defer close(release)
	<-arrived
	w := &worker{sender: sender, schedule: deliver.Schedule{time.Hour}, hold: time.Hour}
	work := func(ctx context.Context, queue string) {
		t.Helper()
		if got := verdict(w.Work(ctx, newJob("m1", 1, queue))); got != "snoozed" {
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
