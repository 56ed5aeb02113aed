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

// A sender resolves before each notification. The Memory stands for a store that it
// shares with the processes that make the changes.
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
