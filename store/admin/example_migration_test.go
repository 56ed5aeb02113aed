package admin_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/store/admin"
	"example.com/go-webhookcfg/store/cache"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// migrate moves a service from src to dst while its handlers go on changing src. It calls
// stopWriters once little is left to copy. Your handlers should then respond 503 until they use
// dst. Your senders can resolve from src until migrate returns.
func migrate(ctx context.Context, dst, src webhookcfg.Store, stopWriters func()) error {
	feed, ok := src.(cache.Feed)
	if !ok {
		return errors.New("the store has no feed")
	}
	seen, err := feed.Changes(ctx, "") // before the copy, so that no change is missed
	if err != nil {
		return err
	}
	if _, err := admin.Copy(ctx, dst, src, nil); err != nil {
		return err
	}
	pass := func() (changes int, err error) {
		if seen, err = feed.Changes(ctx, seen.Next); err != nil {
			return 0, err
		}
		options := &admin.CopyOptions{Replace: true, Clients: append([]string{}, seen.Clients...)}
		if seen.Reset {
			options.Clients = nil // any client may have changed: compare them all
		}
		report, err := admin.Copy(ctx, dst, src, options)
		return report.Changes, err
	}
	const few, passes = 100, 10
	for range passes {
		changes, err := pass()
		if err != nil {
			return err
		}
		if changes < few {
			break
		}
	}
	stopWriters()
	if _, err := pass(); err != nil {
		return err
	}
	verified, err := admin.Verify(ctx, dst, src, nil)
	if err == nil && verified.Different > 0 {
		err = fmt.Errorf("%d webhooks differ, for example %v", verified.Different, verified.Differences[0])
	}
	return err
}

// You can move to another store while the service runs. Writers pause only for the last pass
// and the final comparison.
func Example_migration() {
	ctx := context.Background()
	src, dst := store.NewMemory(), store.NewMemory()
	change := webhookcfg.SetChange("acme", webhookcfg.All(), egress.NewURL("https://hooks.example.com/in"))
	if err := src.Apply(ctx, change); err != nil {
		log.Fatal(err)
	}
	if err := migrate(ctx, dst, src, func() { fmt.Println("writers stopped") }); err != nil {
		log.Fatal(err)
	}
	hook, err := dst.Resolve(ctx, "acme", "e1")
	fmt.Println(hook.URL, err)
	// Output:
	// writers stopped
	// https://hooks.example.com <nil>
}
