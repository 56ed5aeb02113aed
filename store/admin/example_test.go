package admin_test

import (
	"context"
	"fmt"
	"log"

	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/store/admin"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// Before a service stops allowing http, it lists the webhooks that would no longer be called.
func ExampleAudit() {
	ctx := context.Background()
	webhooks := store.NewMemory()
	for entity, url := range map[string]string{
		"e1": "https://hooks.example.com/in",
		"e2": "http://hooks.example.com/in?token=t0ken",
	} {
		change := webhookcfg.SetChange("acme", webhookcfg.Entity(entity), egress.NewURL(url))
		if err := webhooks.Apply(ctx, change); err != nil {
			log.Fatal(err)
		}
	}
	for violation, err := range admin.Audit(ctx, webhooks, "acme", &egress.Policy{}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(violation.Scope, violation.Webhook.URL, violation.Err)
	}
	// Output: entity e2 http://hooks.example.com the URL must be absolute with the scheme https
}
