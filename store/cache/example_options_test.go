package cache_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"time"

	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/store/cache"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// The comments say when you'd set each option. Leave the others at their defaults.
func ExampleOptions() {
	ctx := context.Background()
	shared := store.NewMemory()
	change := webhookcfg.SetChange("acme", webhookcfg.All(), egress.NewURL("https://hooks.example.com/in"))
	change.Time = time.Now().UTC().Truncate(time.Microsecond)
	if err := shared.Apply(ctx, change); err != nil {
		log.Fatal(err)
	}
	local, err := cache.New(shared, &cache.Options{
		// Your clients can wait for half a minute until a change is in effect.
		MaxStale: 30 * time.Second,
		// Delivering to an old webhook is better than not at all, while your store is down.
		StaleIfError: time.Hour,
		// You have many processes, and the database has few connections for each.
		MaxReads: 2,
		// You have more clients or overrides than fit into 128 MiB.
		MaxBytes: 512 << 20,
		// You want to know when polls start to fail.
		Logger: slog.Default(),
	})
	if err != nil {
		log.Fatal(err)
	}
	defer local.Close()
	hook, err := local.Resolve(ctx, "acme", "e1")
	fmt.Println(hook.Source, hook.URL, err)
	// Output: base https://hooks.example.com <nil>
}
