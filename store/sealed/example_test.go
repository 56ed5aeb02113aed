package sealed_test

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"sync"

	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/store/admin"
	"example.com/go-webhookcfg/store/sealed"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// secret stands for 32 random bytes from your vault.
func secret(n byte) []byte { return bytes.Repeat([]byte{n}, 32) }

func mustKey(id string, secret []byte) *sealed.Key {
	key, err := sealed.NewKey(id, secret)
	if err != nil {
		log.Fatal(err)
	}
	return key
}

// sealWith wraps a store with keys that all clients share.
func sealWith(inner webhookcfg.Store, keys ...*sealed.Key) webhookcfg.Store {
	shared, err := sealed.SharedKeys(keys...)
	if err != nil {
		log.Fatal(err)
	}
	s, err := sealed.New(inner, shared, nil)
	if err != nil {
		log.Fatal(err)
	}
	return s
}

// One key for all clients.
func ExampleNew() {
	ctx := context.Background()
	inner := store.NewMemory() // for example, a database
	key, err := sealed.NewKey("2026", secret(1))
	if err != nil {
		log.Fatal(err)
	}
	keys, err := sealed.SharedKeys(key)
	if err != nil {
		log.Fatal(err)
	}
	webhooks, err := sealed.New(inner, keys, &sealed.Options{
		AllowPlain: true, // only while inner still has URLs that aren't sealed
	})
	if err != nil {
		log.Fatal(err)
	}

	// The handler does this when a client sets its webhook.
	url := egress.NewURL("https://hooks.example.com/in?token=t0ken")
	if err := webhooks.Apply(ctx, webhookcfg.SetChange("acme", webhookcfg.All(), url)); err != nil {
		log.Fatal(err)
	}
	hook, err := webhooks.Resolve(ctx, "acme", "e1")
	fmt.Println(hook.URL.Reveal(), err)
	kept, err := inner.Resolve(ctx, "acme", "e1")
	fmt.Printf("%.14s… %v\n", kept.URL.Reveal(), err)
	// Output:
	// https://hooks.example.com/in?token=t0ken <nil>
	// sealed.1.2026.… <nil>
}

// vault keeps a key for each client, as your key management service would.
type vault struct {
	mu   sync.Mutex
	keys map[string]*sealed.Key
}

func (v *vault) Keys(_ context.Context, client string) ([]*sealed.Key, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if key := v.keys[client]; key != nil {
		return []*sealed.Key{key}, nil
	}
	return nil, nil
}

// A key for each client. When you delete a client, destroy its key: nobody can read its URLs
// any more, in any copy of the store.
func ExampleKeys() {
	ctx := context.Background()
	v := &vault{keys: map[string]*sealed.Key{"acme": mustKey("a1", secret(1)), "globex": mustKey("g1", secret(2))}}
	webhooks, err := sealed.New(store.NewMemory(), v, nil)
	if err != nil {
		log.Fatal(err)
	}
	url := egress.NewURL("https://hooks.example.com/in")
	for _, client := range []string{"acme", "globex"} {
		if err := webhooks.Apply(ctx, webhookcfg.SetChange(client, webhookcfg.All(), url)); err != nil {
			log.Fatal(err)
		}
	}

	v.mu.Lock()
	delete(v.keys, "acme")
	v.mu.Unlock()
	_, err = webhooks.Resolve(ctx, "acme", "e1")
	fmt.Println(err)
	hook, err := webhooks.Resolve(ctx, "globex", "e1")
	fmt.Println(hook.URL, err)
	// Output:
	// sealed: URL of client "acme", base: no such key: "a1"
	// https://hooks.example.com <nil>
}

// To get rid of an old key, copy the store into another one with the new key alone. Stop
// changes first, or copy as the example of a migration in package admin does.
func Example_rotation() {
	ctx := context.Background()
	inner := store.NewMemory()
	oldKey, newKey := mustKey("2026", secret(1)), mustKey("2027", secret(2))
	url := egress.NewURL("https://hooks.example.com/in")
	if err := sealWith(inner, oldKey).Apply(ctx, webhookcfg.SetChange("acme", webhookcfg.All(), url)); err != nil {
		log.Fatal(err)
	}

	current := sealWith(inner, newKey, oldKey) // sets use the new key from now on
	rotated := sealWith(store.NewMemory(), newKey)
	report, err := admin.Copy(ctx, rotated, current, nil)
	fmt.Println(report.Changes, err)
	hook, err := rotated.Resolve(ctx, "acme", "e1")
	fmt.Println(hook.URL, err)
	// Output:
	// 1 <nil>
	// https://hooks.example.com <nil>
}
