package delivertest_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/deliver/delivertest"
	"example.com/go-webhookcfg/webhookcfg/egress"
	"github.com/google/go-cmp/cmp"
)

// keys has one key for all clients.
type keys struct{ key deliver.Key }

func (k keys) Keys(context.Context, deliver.Recipient) ([]deliver.Key, error) {
	return []deliver.Key{k.key}, nil
}

// newSender returns a sender to a receiver, as a host's test would set it up.
func newSender(t *testing.T, r *delivertest.Receiver, key deliver.Key) *deliver.Sender {
	t.Helper()
	webhooks := store.NewMemory()
	hooktest.Apply(t, webhooks, webhookcfg.SetChange("acme", webhookcfg.All(), egress.NewURL(r.URL())))
	sender, err := deliver.New(webhooks, keys{key}, &deliver.Options{Policy: egress.Development()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sender.CloseIdleConnections)
	return sender
}

// TestBehaviors: the sender sees each of them as what it stands for, and the receiver keeps
// what arrived.
func TestBehaviors(t *testing.T) {
	for name, test := range map[string]struct {
		become func(*delivertest.Receiver)
		want   deliver.Outcome
		reason deliver.Reason
		wait   time.Duration
		status int // that the receiver has kept, or -1 if nothing arrives
	}{
		"healthy":   {(*delivertest.Receiver).Recover, deliver.Delivered, "", 0, 204},
		"failing":   {func(r *delivertest.Receiver) { r.Fail(500) }, deliver.Failed, deliver.ReasonStatus, 0, 500},
		"gone":      {func(r *delivertest.Receiver) { r.Fail(http.StatusGone) }, deliver.Undeliverable, deliver.ReasonGone, 0, 410},
		"paused":    {func(r *delivertest.Receiver) { r.Pause(time.Minute) }, deliver.Failed, deliver.ReasonThrottled, time.Minute, 429},
		"redirect":  {(*delivertest.Receiver).Redirect, deliver.Failed, deliver.ReasonRedirect, 0, 307},
		"disappear": {(*delivertest.Receiver).Disappear, deliver.Failed, deliver.ReasonUnreachable, 0, -1},
	} {
		t.Run(name, func(t *testing.T) {
			key := deliver.GenerateKey()
			r := delivertest.NewReceiver(t, deliver.GenerateKey(), key)
			sender := newSender(t, r, key)
			sent := deliver.Message{ID: "m1", Body: []byte(`{"n":1}`), ContentType: "application/json"}
			if before := sender.Send(t.Context(), "acme", "e1", sent); before.Outcome != deliver.Delivered {
				t.Fatal(before.Err)
			}
			test.become(r)
			got := sender.Send(t.Context(), "acme", "e1", sent)
			if got.Outcome != test.want || got.Reason != test.reason || got.Wait != test.wait {
				t.Errorf("Send = %v %v, wait %v: %v", got.Outcome, got.Reason, got.Wait, got.Err)
			}
			attempts := r.Attempts()[1:]
			if test.status == -1 && len(attempts) == 0 {
				return
			}
			if len(attempts) != 1 || attempts[0].Status != test.status || !cmp.Equal(attempts[0].Message, sent) {
				t.Errorf("the receiver has kept %+v", attempts)
			}
		})
	}
}

// TestGivesUp: a request hangs until its sender gives up.
func TestGivesUp(t *testing.T) {
	key := deliver.GenerateKey()
	r := delivertest.NewReceiver(t, key)
	r.Hang()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if got := newSender(t, r, key).Send(ctx, "acme", "e1", deliver.Message{ID: "m1"}); got.Reason != deliver.ReasonUnreachable {
		t.Errorf("Send = %v %v", got.Outcome, got.Reason)
	}
}

// TestRecover: a request that hangs goes on when the receiver recovers.
func TestRecover(t *testing.T) {
	key := deliver.GenerateKey()
	r := delivertest.NewReceiver(t, key)
	sender := newSender(t, r, key)
	r.Hang()
	result := make(chan deliver.Result)
	go func() { result <- sender.Send(t.Context(), "acme", "e1", deliver.Message{ID: "m1"}) }()
	r.Recover()
	if got := <-result; got.Outcome != deliver.Delivered {
		t.Errorf("after a recovery: %v %v", got.Outcome, got.Err)
	}
	if received := r.Wait(t.Context(), 1); len(received) != 1 || received[0].ID != "m1" {
		t.Errorf("received %v", received)
	}
}

// failing records whether a test failed.
type failing struct {
	testing.TB
	failed chan string
}

func (f failing) Errorf(format string, _ ...any) { f.failed <- format }

// TestWrongKey: a request that isn't signed with the receiver's key fails the test.
func TestWrongKey(t *testing.T) {
	host := failing{t, make(chan string, 1)}
	r := delivertest.NewReceiver(host, deliver.GenerateKey())
	got := newSender(t, r, deliver.GenerateKey()).Send(t.Context(), "acme", "e1", deliver.Message{ID: "m1"})
	if got.Status != http.StatusUnauthorized || len(host.failed) != 1 || len(r.Attempts()) != 0 {
		t.Errorf("status %d, %d failures, kept %v", got.Status, len(host.failed), r.Attempts())
	}
}
