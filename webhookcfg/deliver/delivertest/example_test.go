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
	receiver := delivertest.NewReceiver(t, keys, "acme")

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
