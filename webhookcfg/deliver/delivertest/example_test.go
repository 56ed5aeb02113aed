package delivertest_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/deliver/delivertest"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// t stands for the argument of your test.
var t = &testing.T{}

// A test of a service that sends to the webhooks of its clients.
func ExampleNewReceiver() {
	keys, err := deliver.DerivedKeys([]byte("thirty-two random bytes or more, from a vault"))
	if err != nil {
		t.Fatal(err)
	}
	receiver := delivertest.NewReceiver(t, keys, deliver.Recipient{Client: "acme"})

	webhooks := store.NewMemory()
	url := egress.NewURL(receiver.URL())
	if err := webhooks.Apply(context.Background(), webhookcfg.SetChange("acme", webhookcfg.All(), url)); err != nil {
		t.Fatal(err)
	}
	sender, err := deliver.New(webhooks, keys, &deliver.Options{Policy: egress.Development()})
	if err != nil {
		t.Fatal(err)
	}

	message := deliver.Message{ID: "m1", Body: []byte(`{"paid":true}`)}
	receiver.Pause(time.Minute)
	result := sender.Send(context.Background(), "acme", "invoice-7", message)
	fmt.Println(result.Outcome, result.Reason, result.Wait)

	receiver.Recover()
	result = sender.Send(context.Background(), "acme", "invoice-7", message)
	fmt.Println(result.Outcome, result.Reason)
	// Output:
	// failed throttled 1m0s
	// deferred paused
}

// vault has a key for each webhook.
type vault map[string]deliver.Key

func (v vault) Keys(_ context.Context, to deliver.Recipient) ([]deliver.Key, error) {
	key, ok := v[to.Client+"/"+to.Entity]
	if !ok {
		return nil, fmt.Errorf("no key for %s/%s", to.Client, to.Entity)
	}
	return []deliver.Key{key}, nil
}

// If each webhook has a key of its own, there's a receiver for each, which accepts no other key.
func ExampleNewReceiver_keyOfWebhook() {
	keys := vault{"acme/": deliver.GenerateKey(), "acme/invoice-7": deliver.GenerateKey()}
	base := delivertest.NewReceiver(t, keys, deliver.Recipient{Client: "acme"})
	override := delivertest.NewReceiver(t, keys, deliver.Recipient{Client: "acme", Entity: "invoice-7"})

	ctx := context.Background()
	webhooks := store.NewMemory()
	for _, change := range []webhookcfg.Change{
		webhookcfg.SetChange("acme", webhookcfg.All(), egress.NewURL(base.URL())),
		webhookcfg.SetChange("acme", webhookcfg.Entity("invoice-7"), egress.NewURL(override.URL())),
	} {
		if err := webhooks.Apply(ctx, change); err != nil {
			t.Fatal(err)
		}
	}
	sender, err := deliver.New(webhooks, keys, &deliver.Options{Policy: egress.Development()})
	if err != nil {
		t.Fatal(err)
	}
	for _, entity := range []string{"invoice-7", "invoice-8"} {
		sender.Send(ctx, "acme", entity, deliver.Message{ID: entity, Body: []byte("{}")})
	}
	fmt.Println(base.Wait(ctx, 1)[0].ID, override.Wait(ctx, 1)[0].ID)
	// Output: invoice-8 invoice-7
}
