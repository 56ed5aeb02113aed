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

// With Try, people send a test to a URL before they set it. Nothing changes, whatever comes of
// it.
func ExampleSender_Trier() {
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		fmt.Println("the receiver gets", r.Header.Get("Webhook-Id")[:5])
	}))
	defer receiver.Close()
	webhooks := store.NewMemory()
	keys, err := deliver.DerivedKeys([]byte("thirty-two random bytes or more, from a vault"))
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
		Client:    func(*http.Request) (client, actor string, err error) { return "acme", "ann@acme.example", nil },
		SignInURL: "/sign-in",
		Try:       sender.Trier(deliver.Message{Body: []byte(`{"type":"test"}`)}),
	})
	if err != nil {
		log.Fatal(err)
	}

	// A person types a URL for the entity e1, and tries it.
	form := url.Values{"client": {"acme"}, "id": {"e1"}, "url": {receiver.URL + "/in"}}
	r := httptest.NewRequest(http.MethodPost, "/?page=try", strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	pages.ServeHTTP(w, r)
	fmt.Println("the page says so:", strings.Contains(w.Body.String(), "Your server accepted the test."))
	hook, err := webhooks.Resolve(context.Background(), "acme", "e1")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("the webhook is set:", !hook.URL.IsZero())
	// Output:
	// the receiver gets test_
	// the page says so: true
	// the webhook is set: false
}
