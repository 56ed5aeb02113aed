package deliver_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/deliver/delivertest"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// TestTester: the outcome of a test in the words of the page.
func TestTester(t *testing.T) {
	key := deliver.GenerateKey()
	receiver := delivertest.NewReceiver(t, keyring{key}, "acme")
	st := configured(t, receiver.URL())
	test := newSender(t, st, keyring{key}, nil).Tester(deliver.Message{Body: []byte(`{"type":"test"}`)})
	if reason, err := test(t.Context(), "acme", ""); reason != "" || err != nil {
		t.Errorf("accepted: got %q, %v", reason, err)
	}
	var waiter interface{ RetryAfter() time.Duration }
	if reason, err := test(t.Context(), "acme", "e1"); reason != "" || !errors.As(err, &waiter) || waiter.RetryAfter() < time.Second || waiter.RetryAfter() > 10*time.Second {
		t.Errorf("a moment later: got %q, %v", reason, err)
	}
	receiver.Fail(http.StatusGone)
	test = newSender(t, st, keyring{key}, nil).Tester(deliver.Message{Body: []byte(`{"type":"test"}`)})
	if reason, err := test(t.Context(), "acme", "e1"); reason != "gone" || err != nil {
		t.Errorf("gone: got %q, %v", reason, err)
	}
	got := receiver.Received()
	if len(got) != 1 || string(got[0].Body) != `{"type":"test"}` || !strings.HasPrefix(got[0].ID, "test_") {
		t.Errorf("received %v", got)
	}
	if attempts := receiver.Attempts(); len(attempts) != 2 || attempts[0].Message.ID == attempts[1].Message.ID {
		t.Errorf("two tests have the same ID, or there are not two: %v", attempts)
	}
	for name, test := range map[string]func(context.Context, string, string) (string, error){
		"no webhook":     newSender(t, store.NewMemory(), keyring{key}, nil).Tester(deliver.Message{}),
		"no key":         newSender(t, configured(t, receiver.URL()), keyring{}, nil).Tester(deliver.Message{}),
		"broken message": newSender(t, configured(t, receiver.URL()), keyring{key}, nil).Tester(deliver.Message{ContentType: "?"}),
	} {
		reason, err := test(t.Context(), "acme", "e1")
		if reason != "" || err == nil || errors.As(err, &waiter) {
			t.Errorf("%s: got %q, %v", name, reason, err)
		} else if isNone := strings.Contains(err.Error(), "no webhook to test"); isNone != (name == "no webhook") {
			t.Errorf("%s: the error doesn't say why: %v", name, err)
		}
	}
}

// TestTrier: a test of a URL that isn't set is signed and limited like any other. It's neither
// stopped nor recorded, and needs no webhook.
func TestTrier(t *testing.T) {
	key := deliver.GenerateKey()
	receiver := delivertest.NewReceiver(t, keyring{key}, "acme")
	health, err := deliver.NewHealth(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	st := configured(t, receiver.URL())
	hook, err := st.Resolve(t.Context(), "acme", "e1")
	if err != nil {
		t.Fatal(err)
	}
	for _, entity := range []string{"", "e1"} {
		try := newSender(t, st, keyring{key}, &deliver.Options{Health: health}).Trier(deliver.Message{Body: []byte(`{"type":"test"}`)})
		target := egress.NewURL(receiver.URL() + "/new")
		if reason, err := try(t.Context(), "acme", entity, target); reason != "" || err != nil {
			t.Errorf("accepted: got %q, %v", reason, err)
		}
		var waiter interface{ RetryAfter() time.Duration }
		if reason, err := try(t.Context(), "acme", entity, target); reason != "" || !errors.As(err, &waiter) || waiter.RetryAfter() < time.Second {
			t.Errorf("a moment later: got %q, %v", reason, err)
		}
		if reason, err := try(t.Context(), "acme", entity, egress.NewURL("http://10.0.0.1/")); reason != "refused" || err != nil {
			t.Errorf("against the policy: got %q, %v", reason, err)
		}
	}
	if got := receiver.Received(); len(got) != 2 || !strings.HasPrefix(got[0].ID, "test_") {
		t.Errorf("received %v", got)
	}
	if status, err := health.Status(t.Context(), "acme", "e1", hook); err != nil || status.State != "" {
		t.Errorf("it was recorded: %+v, %v", status, err)
	}
}

// TestSigningKey: the page shows the first key of the webhook that the person looks at. Before
// there's a webhook, that can be none.
func TestSigningKey(t *testing.T) {
	first, second := deliver.GenerateKey(), deliver.GenerateKey()
	base := webhookcfg.Webhook{URL: egress.NewURL("https://example.com"), Source: webhookcfg.SourceBase}
	own := webhookcfg.Webhook{URL: egress.NewURL("https://example.org"), Source: webhookcfg.SourceOverride}
	byWebhook := keysFunc(func(_ context.Context, to deliver.Recipient) ([]deliver.Key, error) {
		return map[string][]deliver.Key{"": {first, second}, "own": {second, first}}[to.Entity], nil
	})
	for _, tt := range []struct {
		keys   deliver.Keys
		entity string
		hook   webhookcfg.Webhook
		want   string
		fails  bool
	}{
		{byWebhook, "", base, first.Reveal(), false},
		{byWebhook, "e1", base, first.Reveal(), false},
		{byWebhook, "own", own, second.Reveal(), false},
		{byWebhook, "e1", own, "", true},
		{keyring{first}, "e1", webhookcfg.Webhook{}, first.Reveal(), false},
		{keyring{}, "e1", webhookcfg.Webhook{}, "", false},
		{keyring{}, "e1", base, "", true},
		{keyring{deliver.Key{}}, "e1", base, "", true},
		{keysFunc(func(context.Context, deliver.Recipient) ([]deliver.Key, error) { return nil, errPanic }), "", webhookcfg.Webhook{}, "", true},
	} {
		if got, err := deliver.SigningKey(tt.keys)(t.Context(), "acme", tt.entity, tt.hook); got != tt.want || (err != nil) != tt.fails {
			t.Errorf("%T %q %v: got %q, %v", tt.keys, tt.entity, tt.hook, got, err)
		}
	}
}
