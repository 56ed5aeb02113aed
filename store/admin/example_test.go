package admin_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/store/admin"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// Before you stop allowing http, list the webhooks that you would no longer call.
func ExampleAudit() {
	ctx := context.Background()
	webhooks := store.NewMemory()
	for entity, url := range map[string]string{
		"e1": "https://hooks.example.com/in",
		"e2": "http://hooks.example.com/in?token=t0ken",
	} {
		change := webhookcfg.SetChange("acme", webhookcfg.Entity(entity), egress.NewURL(url))
		change.Time = time.Now().UTC().Truncate(time.Microsecond)
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

// Copy to a file, and you have an export: text with a checksum per line, which store.OpenFile opens.
func ExampleCopy() {
	ctx := context.Background()
	webhooks := store.NewMemory() // or a database
	change := webhookcfg.SetChange("acme", webhookcfg.All(), egress.NewURL("https://hooks.example.com/in"))
	change.Time = time.Now().UTC().Truncate(time.Microsecond)
	if err := webhooks.Apply(ctx, change); err != nil {
		log.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "export")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	export, err := store.OpenFile(filepath.Join(dir, "export.jsonl"), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer export.Close()
	report, err := admin.Copy(ctx, export, webhooks, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(report.Clients, "client,", report.Webhooks, "webhook,", report.Different, "refused")
	// Output: 1 client, 1 webhook, 0 refused
}

// When you delete a client, erase its webhooks too.
func ExampleErase() {
	ctx := context.Background()
	webhooks := store.NewMemory()
	change := webhookcfg.SetChange("acme", webhookcfg.All(), egress.NewURL("https://hooks.example.com/in"))
	change.Time = time.Now().UTC().Truncate(time.Microsecond)
	if err := webhooks.Apply(ctx, change); err != nil {
		log.Fatal(err)
	}
	if err := admin.Erase(ctx, webhooks, "acme"); err != nil {
		log.Fatal(err)
	}
	hook, err := webhooks.Resolve(ctx, "acme", "e1") // of a new client that got the same name
	fmt.Println(hook.Source, err)
	// Output: none <nil>
}
