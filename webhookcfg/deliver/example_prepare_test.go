package deliver_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// The receiver follows the CloudEvents webhook specification: it gives its consent to a sending
// system, and then wants to see its name in each notification.
func ExampleOptions_prepare() {
	const origin = "modules.example.com"
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("WebHook-Request-Origin") != origin:
			w.WriteHeader(http.StatusForbidden)
		case r.Method == http.MethodOptions:
			w.Header().Set("WebHook-Allowed-Origin", origin)
		}
	}))
	defer receiver.Close()

	// The handler asks for consent before a client can set a URL, if its Options have this
	// Prober.
	consent, err := egress.Handshake(origin)
	if err != nil {
		log.Fatal(err)
	}
	policy := egress.Development() // in your service, the handler's policy
	prober, err := policy.Prober(&egress.ProberOptions{HTTPProbe: consent})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	fmt.Println("consent:", prober.Probe(ctx, "acme", egress.NewURL(receiver.URL)) == nil)

	// The sender names the same origin.
	webhooks := store.NewMemory()
	if err := webhooks.Apply(ctx, webhookcfg.SetChange("acme", webhookcfg.All(), egress.NewURL(receiver.URL))); err != nil {
		log.Fatal(err)
	}
	keys, err := deliver.DerivedKeys([]byte("thirty-two random bytes or more, from a vault"))
	if err != nil {
		log.Fatal(err)
	}
	sender, err := deliver.New(webhooks, keys, &deliver.Options{
		Policy: policy,
		Prepare: func(_ context.Context, _, _ string, _ deliver.Message, r *http.Request) error {
			r.Header.Set("WebHook-Request-Origin", origin)
			return nil
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer sender.CloseIdleConnections()
	result := sender.Send(ctx, "acme", "e1", deliver.Message{ID: "msg_1", Body: []byte(`{"version":7}`)})
	fmt.Println("notification:", result.Outcome)
	// Output:
	// consent: true
	// notification: delivered
}
