package deliver_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"

	"example.com/go-webhookcfg/auth"
	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/egress"
	"example.com/go-webhookcfg/webhookcfg/portal"
)

// The sender and its keys go into the options of package portal as they are. People can then
// send a test, and see the key that their receiver needs.
func ExampleSender_Tester() {
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		fmt.Println("the receiver gets", r.Header.Get("Webhook-Id")[:5])
	}))
	defer receiver.Close()
	webhooks := store.NewMemory()
	if err := webhooks.Apply(context.Background(), webhookcfg.SetChange("acme", webhookcfg.All(), egress.NewURL(receiver.URL))); err != nil {
		log.Fatal(err)
	}
	keys, err := deliver.DerivedOriginKeys([]byte("thirty-two random bytes or more, from a vault"))
	if err != nil {
		log.Fatal(err)
	}
	policy := egress.Development() // in your service, the zero Policy
	sender, err := deliver.New(webhooks, keys, &deliver.Options{Policy: policy})
	if err != nil {
		log.Fatal(err)
	}
	defer sender.CloseIdleConnections()
	clients, err := auth.NewStatic(auth.Credential{ID: "acme", Secrets: []auth.Secret{auth.GenerateSecret()}})
	if err != nil {
		log.Fatal(err)
	}
	handler, err := webhookcfg.NewHandler(webhooks, clients, &webhookcfg.Options{Policy: policy})
	if err != nil {
		log.Fatal(err)
	}

	pages, err := portal.New(handler, &portal.Options{
		Client:     func(*http.Request) (client, actor string, err error) { return "acme", "ann@acme.example", nil },
		SignInURL:  "/sign-in",
		Test:       sender.Tester(deliver.Message{Body: []byte(`{"type":"test"}`)}),
		SigningKey: deliver.SigningKey(keys),
	})
	if err != nil {
		log.Fatal(err)
	}

	// A person asks for the key of the webhook, and sends a test.
	w := httptest.NewRecorder()
	pages.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/?page=key", nil))
	fmt.Println("the page has a key:", strings.Contains(w.Body.String(), "whsec_"))
	form := strings.NewReader(url.Values{"client": {"acme"}}.Encode())
	r := httptest.NewRequest(http.MethodPost, "/?page=test-all", form)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	pages.ServeHTTP(httptest.NewRecorder(), r)
	// Output:
	// the page has a key: true
	// the receiver gets test_
}
