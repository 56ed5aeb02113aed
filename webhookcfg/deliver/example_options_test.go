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

// The comments say when you'd set each option. Leave the others at their defaults.
func ExampleOptions() {
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Println("from", r.UserAgent())
		w.WriteHeader(http.StatusInternalServerError)
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
	health, err := deliver.NewHealth(nil, &deliver.HealthOptions{
		// You have more than 100,000 webhooks, and 250 MB of memory for their records.
		MaxWebhooks: 500_000,
		// Your clients should hear of a dead receiver after a day, not after five.
		StopAfter: 24 * time.Hour,
		// You want to tell the client, for example by mail.
		OnChange: func(_ context.Context, client string, _ webhookcfg.Scope, _, after webhookcfg.DeliveryStatus) {
			fmt.Println(client, "is", after.State, "because of", after.Reason)
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	sender, err := deliver.New(webhooks, keys, &deliver.Options{
		Policy: egress.Development(),
		// Your queue kills jobs after 10 seconds, and an attempt should end before that.
		Timeout: 6 * time.Second,
		// You have few clients, and each can take many of your workers.
		PerClient: 64,
		// Your receivers can handle more requests at a time. Keep as many connections open.
		PerHost:   32,
		Transport: egress.TransportOptions{MaxIdleConnsPerHost: 32},
		// You want to notice sooner than after an hour that a receiver works again.
		MaxPause: 10 * time.Minute,
		Health:   health,
		// Operators of receivers should see in their logs who calls, and how to reach you.
		UserAgent: "acme-modules/1.4 (+https://acme.example/webhooks)",
		// You count results in your metrics.
		OnResult: func(_ context.Context, client, entity, id string, r deliver.Result) {
			fmt.Println(client, entity, id, r.Outcome, r.Status)
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer sender.CloseIdleConnections()

	sender.Send(ctx, "acme", "e1", deliver.Message{ID: "msg_1", Body: []byte(`{"version":7}`)})
	// Output:
	// from acme-modules/1.4 (+https://acme.example/webhooks)
	// acme is failing because of status
	// acme e1 msg_1 failed 500
}
