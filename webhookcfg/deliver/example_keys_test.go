package deliver_test

import (
	"context"
	"fmt"
	"log"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// A client has webhooks at two vendors. Each can verify what it gets, and neither can sign for
// the other.
func ExampleDerivedOriginKeys() {
	ctx := context.Background()
	keys, err := deliver.DerivedOriginKeys([]byte("thirty-two random bytes or more, from a vault"))
	if err != nil {
		log.Fatal(err)
	}
	keyOf := func(url string) string {
		ofURL, err := keys.Keys(ctx, deliver.Recipient{Client: "acme", Webhook: webhookcfg.Webhook{URL: egress.NewURL(url)}})
		if err != nil {
			log.Fatal(err)
		}
		return ofURL[0].Reveal()
	}
	fmt.Println("same vendor:", keyOf("https://hooks.example.com/a") == keyOf("https://HOOKS.example.com:443/b"))
	fmt.Println("another one:", keyOf("https://hooks.example.com/a") == keyOf("https://in.example.net/a"))
	// Output:
	// same vendor: true
	// another one: false
}

// vault has a key for each webhook. In your service, it's a table with encrypted keys.
type vault map[string]deliver.Key

func (v vault) Keys(_ context.Context, to deliver.Recipient) ([]deliver.Key, error) {
	key, ok := v[to.Client+"/"+to.Entity]
	if !ok {
		return nil, fmt.Errorf("no key for %s %s", to.Client, to.Entity)
	}
	return []deliver.Key{key}, nil
}

// Each webhook has a key of its own: the client's base, whose entity is "", and each override.
func ExampleKeys() {
	keys := vault{"acme/": deliver.GenerateKey(), "acme/e1": deliver.GenerateKey()}
	show := deliver.SigningKey(keys) // for people, as an option of package portal
	base := webhookcfg.Webhook{URL: egress.NewURL("https://example.com"), Source: webhookcfg.SourceBase}
	override := webhookcfg.Webhook{URL: egress.NewURL("https://example.net"), Source: webhookcfg.SourceOverride}

	ctx := context.Background()
	ofBase, _ := show(ctx, "acme", "e7", base)
	ofOverride, _ := show(ctx, "acme", "e1", override)
	_, err := show(ctx, "acme", "e2", override)
	fmt.Println(ofBase == keys["acme/"].Reveal(), ofOverride == keys["acme/e1"].Reveal(), err)
	// Output: true true deliver: Keys: no key for acme e2
}
