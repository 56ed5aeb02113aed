package cache_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/store/cache"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// A sender resolves before each notification. The Memory stands for a store that it shares
// with your other processes, where clients change their webhooks.
func ExampleCache() {
	shared := store.NewMemory()
	local, err := cache.New(shared, &cache.Options{
		MaxStale:     2 * time.Second,
		StaleIfError: 10 * time.Minute, // while the store is down
	})
	if err != nil {
		log.Fatal(err)
	}
	defer local.Close()

	ctx := context.Background()
	change := webhookcfg.SetChange("acme", webhookcfg.All(), egress.NewURL("https://hooks.example.com/in?token=t0ken"))
	change.Time = time.Now().UTC().Truncate(time.Microsecond)
	if err := shared.Apply(ctx, change); err != nil {
		log.Fatal(err)
	}
	for range 1000 {
		hook, err := local.Resolve(ctx, "acme", "e1")
		if err != nil {
			log.Fatal(err)
		}
		if hook.URL.IsZero() {
			log.Fatal("no webhook")
		}
	}
	fmt.Println("the store was read fewer than ten times:", local.Stats().Reads < 10)
	// Output: the store was read fewer than ten times: true
}

// Read all clients ahead before you start the workers.
func ExampleCache_Warm() {
	shared := store.NewMemory()
	ctx := context.Background()
	for _, client := range []string{"acme", "globex", "initech"} {
		change := webhookcfg.SetChange(client, webhookcfg.All(), egress.NewURL("https://hooks.example.com/"+client))
		change.Time = time.Now().UTC().Truncate(time.Microsecond)
		if err := shared.Apply(ctx, change); err != nil {
			log.Fatal(err)
		}
	}
	local, err := cache.New(shared, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer local.Close()

	var clients []string
	for cursor, more := "", true; more; more = cursor != "" {
		page, err := shared.ListClients(ctx, cursor, 1000)
		if err != nil {
			log.Fatal(err)
		}
		clients, cursor = append(clients, page.Clients...), page.Next
	}
	if err := local.Warm(ctx, clients); err != nil {
		log.Fatal(err)
	}
	if _, err := local.Resolve(ctx, "globex", "an entity that nobody asked for"); err != nil {
		log.Fatal(err)
	}
	stats := local.Stats()
	fmt.Println(stats.Reads, "reads,", stats.Hits, "hit")
	// Output: 3 reads, 1 hit
}
