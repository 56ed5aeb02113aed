package auth_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"example.com/go-webhookcfg/auth"
	"example.com/go-webhookcfg/webhookcfg"
)

// An operator edits the file, and makes a mistake.
func ExampleFileOptions() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "credentials")
	line, err := auth.SHA256Line("acme", auth.NewSecret("a-long-random-secret"))
	if err != nil {
		log.Fatal(err)
	}
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			log.Fatal(err)
		}
	}

	write("begin\n" + line + "\nend\n")
	file, err := auth.OpenFile(path, &auth.FileOptions{
		// The file is a secret that Kubernetes mounts, with mode 0440 for a group.
		AllowReadable: true,
		// People chose their secrets, and PBKDF2 can take more than half of your processors.
		SlowHashes: 8,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer file.Close()
	write("begin\n" + line + "\n") // the end is missing
	fmt.Println("in use:", file.Reload(context.Background()) == nil)
	fmt.Println("healthy:", file.Healthy(context.Background()) == nil) // for your alerts
	client, err := file.Verify(context.Background(), "acme", "a-long-random-secret")
	fmt.Println(client.ID, err)
	// Output:
	// in use: false
	// healthy: false
	// acme <nil>
}

// A function of yours checks the clients, and you load them again when they change.
func ExampleCacheOptions() {
	var clients *auth.Static
	var loaded uint64
	load := func(secret string) {
		var err error
		if clients, err = auth.NewStatic(auth.Credential{ID: "acme", Secrets: []auth.Secret{auth.NewSecret(secret)}}); err != nil {
			log.Fatal(err)
		}
		loaded++
	}
	load("a-long-random-secret")
	check := func(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
		return clients.Verify(ctx, id, secret)
	}
	verifier, err := auth.NewCache(auth.Func(check), &auth.CacheOptions{
		// Revoking a secret should take effect sooner, even where nothing tells the cache.
		TTL: time.Minute,
		// You have more than 10,000 clients, or they sign in from many addresses.
		Size: 100_000,
		// The verifier is a Func, which hides that its clients have changed.
		Revision: func() uint64 { return loaded },
	})
	if err != nil {
		log.Fatal(err)
	}
	signIn := func() {
		client, err := verifier.Verify(context.Background(), "acme", "a-long-random-secret")
		fmt.Printf("%q, refused: %v\n", client.ID, errors.Is(err, webhookcfg.ErrInvalidCredentials))
	}
	signIn()
	load("another-long-random-secret")
	signIn()
	// Output:
	// "acme", refused: false
	// "", refused: true
}

// All secrets are generated. Nobody guesses these, but a flood of guesses could lock clients
// out.
func ExampleThrottleOptions() {
	clients, err := auth.NewStatic(auth.Credential{ID: "acme", Secrets: []auth.Secret{auth.NewSecret("a-long-random-secret")}})
	if err != nil {
		log.Fatal(err)
	}
	throttled, err := auth.NewThrottle(clients, &auth.ThrottleOptions{
		// Many of your clients share an address, such as the gateway of a cloud.
		PerSource: auth.Rate{Burst: 1000, Every: 100 * time.Millisecond},
		// A client should be able to sign in from a new address even during a flood.
		PerClient: auth.Rate{Burst: 100_000, Every: time.Millisecond},
		// You'd rather save memory than remember failures from 65,536 addresses.
		Size: 1 << 14,
	})
	if err != nil {
		log.Fatal(err)
	}
	from := func(addr netip.Addr) context.Context {
		return auth.ContextWithSource(context.Background(), addr)
	}
	addr := netip.MustParseAddr("198.18.0.0")
	for range 2000 {
		addr = addr.Next()
		if _, err := throttled.Verify(from(addr), "acme", "guess"); !errors.Is(err, webhookcfg.ErrInvalidCredentials) {
			log.Fatal(err)
		}
	}
	client, err := throttled.Verify(from(addr.Next()), "acme", "a-long-random-secret")
	fmt.Println(client.ID, err)
	// Output: acme <nil>
}

// Your database has up to three hashes for a client.
func ExampleLookupOptions() {
	hash := func(secret []byte) ([]byte, error) { return bytes.ToUpper(secret), nil } // a stand-in for bcrypt
	compare := func(hash, secret []byte) error {
		if !bytes.Equal(hash, bytes.ToUpper(secret)) {
			return errors.New("wrong secret")
		}
		return nil
	}
	find := func(_ context.Context, id string) (secrets []auth.HashedSecret, err error) {
		if id != "acme" {
			return nil, nil
		}
		for _, name := range []string{"web", "batch", "backup"} {
			sum, _ := hash([]byte(id + "-" + name))
			secrets = append(secrets, auth.HashedSecret{Hash: sum, Client: webhookcfg.Client{ID: id, SecretName: name}})
		}
		return secrets, nil
	}
	verifier, err := auth.NewLookup(auth.LookupOptions{
		Find: find, Hash: hash, Compare: compare,
		// Clients have more secrets than an old one and a new one, such as one for each system.
		MaxHashes: 3,
		// Each hash takes much memory, as with argon2id, so few should be computed at a time.
		SlowHashes: 4,
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(verifier.Verify(context.Background(), "acme", "acme-backup"))
	// Output: {acme backup} <nil>
}
