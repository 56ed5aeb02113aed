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

// keys are those of every recipient.
type keys []deliver.Key

func (k keys) Keys(context.Context, deliver.Recipient) ([]deliver.Key, error) { return k, nil }

// newSender returns a sender to a receiver, as a host's test would set it up.
func newSender(t *testing.T, r *delivertest.Receiver, k deliver.Keys) *deliver.Sender {
	t.Helper()
	webhooks := store.NewMemory()
	hooktest.Apply(t, webhooks, webhookcfg.SetChange("acme", webhookcfg.All(), egress.NewURL(r.URL())))
	sender, err := deliver.New(webhooks, k, &deliver.Options{Policy: egress.Development()})
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
		status int // that the receiver has kept, or 0 if there was none
	}{
		"healthy":   {(*delivertest.Receiver).Recover, deliver.Delivered, "", 0, 204},
		"failing":   {func(r *delivertest.Receiver) { r.Fail(500) }, deliver.Failed, deliver.ReasonStatus, 0, 500},
		"gone":      {func(r *delivertest.Receiver) { r.Fail(http.StatusGone) }, deliver.Undeliverable, deliver.ReasonGone, 0, 410},
		"paused":    {func(r *delivertest.Receiver) { r.Pause(time.Minute) }, deliver.Failed, deliver.ReasonThrottled, time.Minute, 429},
		"redirect":  {(*delivertest.Receiver).Redirect, deliver.Failed, deliver.ReasonRedirect, 0, 307},
		"disappear": {(*delivertest.Receiver).Disappear, deliver.Failed, deliver.ReasonUnreachable, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			key := deliver.GenerateKey()
			r := delivertest.NewReceiver(t, keys{deliver.GenerateKey(), key}, deliver.Recipient{Client: "acme"})
			sender := newSender(t, r, keys{key})
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
			if len(attempts) == 0 || attempts[0].Status != test.status || !cmp.Equal(attempts[0].Message, sent) {
				t.Errorf("the receiver has kept %+v", attempts)
			}
		})
	}
}

// TestGivesUp: a request hangs until its sender gives up.
func TestGivesUp(t *testing.T) {
	key := deliver.GenerateKey()
	r := delivertest.NewReceiver(t, keys{key}, deliver.Recipient{Client: "acme"})
	r.Hang()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if got := newSender(t, r, keys{key}).Send(ctx, "acme", "e1", deliver.Message{ID: "m1"}); got.Reason != deliver.ReasonUnreachable {
		t.Errorf("Send = %v %v", got.Outcome, got.Reason)
	}
}

// TestRecover: a request that hangs goes on when the receiver recovers.
func TestRecover(t *testing.T) {
	key := deliver.GenerateKey()
	r := delivertest.NewReceiver(t, keys{key}, deliver.Recipient{Client: "acme"})
	sender := newSender(t, r, keys{key})
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
	r := delivertest.NewReceiver(host, keys{deliver.GenerateKey()}, deliver.Recipient{Client: "acme"})
	got := newSender(t, r, keys{deliver.GenerateKey()}).Send(t.Context(), "acme", "e1", deliver.Message{ID: "m1"})
	if got.Status != http.StatusUnauthorized || len(host.failed) != 1 || len(r.Attempts()) != 0 {
		t.Errorf("status %d, %d failures, kept %v", got.Status, len(host.failed), r.Attempts())
	}
}

// TestOriginKeys: the receiver knows the key for its own URL.
func TestOriginKeys(t *testing.T) {
	derived, err := deliver.DerivedOriginKeys(make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	r := delivertest.NewReceiver(t, derived, deliver.Recipient{Client: "acme"})
	if got := newSender(t, r, derived).Send(t.Context(), "acme", "e1", deliver.Message{ID: "m1"}); got.Outcome != deliver.Delivered {
		t.Errorf("Send = %v %v", got.Outcome, got.Err)
	}
	host := failing{t, make(chan string, 1)}
	ofAnother := delivertest.NewReceiver(host, derived, deliver.Recipient{Client: "globex"})
	if got := newSender(t, ofAnother, derived).Send(t.Context(), "acme", "e1", deliver.Message{ID: "m1"}); got.Status != http.StatusUnauthorized || len(host.failed) != 1 {
		t.Errorf("another client's receiver: %v %d", got.Outcome, got.Status)
	}
}

// TestRecipient: the receiver asks for the keys of its own webhook, and accepts no other's.
func TestRecipient(t *testing.T) {
	all := vault{"acme/": deliver.GenerateKey(), "acme/e1": deliver.GenerateKey()}
	for entity, other := range map[string]string{"": "e1", "e1": ""} {
		host := failing{t, make(chan string, 1)}
		r := delivertest.NewReceiver(host, all, deliver.Recipient{Client: "acme", Entity: entity})
		if got := newSender(t, r, keys{all["acme/"+entity]}).Send(t.Context(), "acme", "e1", deliver.Message{ID: "m1"}); got.Outcome != deliver.Delivered {
			t.Errorf("%q with its key: %v %v", entity, got.Outcome, got.Err)
		}
		if got := newSender(t, r, keys{all["acme/"+other]}).Send(t.Context(), "acme", "e1", deliver.Message{ID: "m1"}); got.Status != http.StatusUnauthorized || len(host.failed) != 1 {
			t.Errorf("%q with the key of %q: %v, %d failures", entity, other, got.Outcome, len(host.failed))
		}
	}
}
