package deliver_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// An operator sees that a webhook is paused, and ends the pause because its receiver has been repaired.
func ExampleSender_Failing() {
	repaired := false
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !repaired {
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer receiver.Close()

	ctx := context.Background()
	webhooks := store.NewMemory()
	if err := webhooks.Apply(ctx, webhookcfg.SetChange("acme", webhookcfg.All(), egress.NewURL(receiver.URL))); err != nil {
		log.Fatal(err)
	}
	keys, err := deliver.DerivedKeys([]byte("thirty-two random bytes or more, from a vault"))
	if err != nil {
		log.Fatal(err)
	}
	sender, err := deliver.New(webhooks, keys, &deliver.Options{
		Policy: egress.Development(),
		// A client that pays for it may have more attempts under way.
		Limits: func(client string) (perClient, perHost int) {
			if client == "acme" {
				return 32, 8
			}
			return 0, 0 // the default
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer sender.CloseIdleConnections()

	send := func(id string) {
		result := sender.Send(ctx, "acme", "e1", deliver.Message{ID: id, Body: []byte(`{"version":7}`)})
		fmt.Println(id, result.Outcome, result.Reason)
	}
	send("msg_1")
	send("msg_2")
	repaired = true
	for f := range sender.Failing() {
		fmt.Println(f.Client, f.Scope, "is paused for", time.Until(f.PausedUntil).Round(time.Minute))
		sender.Resume(f.Client, f.Scope) // and make the messages that wait in your queue due
	}
	send("msg_2")
	// Output:
	// msg_1 failed throttled
	// msg_2 deferred paused
	// acme all is paused for 1h0m0s
	// msg_2 delivered
}
