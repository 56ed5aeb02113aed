package auth_test

import (
	"context"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"example.com/go-webhookcfg/auth"
	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
)

func ExampleNewStatic() {
	verifier, err := auth.NewStatic(
		// Two secrets, while the client switches from one to the other.
		auth.Credential{ID: "acme", Secrets: []auth.Secret{auth.NewSecret("old-long-random-secret"), auth.NewSecret("new-long-random-secret")}},
		// A second id for the same owner, to replace the first one.
		auth.Credential{ID: "acme-2", Secrets: []auth.Secret{auth.NewSecret("another-long-random-secret")}, Owner: "acme"},
		// A former client. Nobody else should get its id.
		auth.Credential{ID: "globex", Disabled: true},
	)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	client, err := verifier.Verify(ctx, "acme", "new-long-random-secret")
	fmt.Println(client.ID, err)
	client, err = verifier.Verify(ctx, "acme-2", "another-long-random-secret")
	fmt.Println(client.ID, err)
	_, err = verifier.Verify(ctx, "acme", "guess")
	fmt.Println(errors.Is(err, webhookcfg.ErrInvalidCredentials))
	// Output:
	// acme <nil>
	// acme <nil>
	// true
}

// Your function can call another service. Or it can change the result of a verifier, as here,
// where clients own configurations under names that you choose.
func ExampleFunc() {
	clients, err := auth.NewStatic(auth.Credential{ID: "acme", Secrets: []auth.Secret{auth.NewSecret("a-long-random-secret")}})
	if err != nil {
		log.Fatal(err)
	}
	verifier := auth.Func(func(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
		client, err := clients.Verify(ctx, id, secret)
		if err != nil {
			return webhookcfg.Client{}, err
		}
		return webhookcfg.Client{ID: "tenant-7/" + client.ID}, nil
	})
	client, err := verifier.Verify(context.Background(), "acme", "a-long-random-secret")
	fmt.Println(client.ID, err)
	// Output: tenant-7/acme <nil>
}

func ExampleOpenFile() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "credentials")

	// printf %s open-sesame | sha256sum
	const text = `begin
aladdin:sha256:d7ecdf25eaf3deba0f2628771dbdd22d4138ab6cf38f91ed02a2ca0dec7c8ab7 name=lamp
end
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		log.Fatal(err)
	}
	file, err := auth.OpenFile(path, &auth.FileOptions{Poll: 10 * time.Second})
	if err != nil {
		log.Fatal(err)
	}
	defer file.Close()
	client, err := file.Verify(context.Background(), "aladdin", "open-sesame")
	fmt.Println(client.ID, client.SecretName, err)
	// Output: aladdin lamp <nil>
}

// Your database has the clients, with hashes of a kind that you chose. For bcrypt, Hash calls
// bcrypt.GenerateFromPassword, and Compare is bcrypt.CompareHashAndPassword.
func ExampleNewLookup() {
	const rounds = 10_000 // keeps the example fast, but OWASP recommends 600,000
	hash := func(secret []byte) ([]byte, error) {
		salt := []byte(rand.Text()) // 26 bytes
		sum, err := pbkdf2.Key(sha256.New, string(secret), salt, rounds, 32)
		return append(salt, sum...), err
	}
	compare := func(hash, secret []byte) error {
		if len(hash) != 26+32 {
			return errors.New("malformed hash")
		}
		sum, err := pbkdf2.Key(sha256.New, string(secret), hash[:26], rounds, 32)
		if err == nil && subtle.ConstantTimeCompare(sum, hash[26:]) == 0 {
			err = errors.New("wrong secret")
		}
		return err
	}

	stored, err := hash([]byte("correct horse"))
	if err != nil {
		log.Fatal(err)
	}
	database := map[string][]auth.HashedSecret{
		"acme": {{Hash: stored, Client: webhookcfg.Client{ID: "tenant-7", SecretName: "2026"}}},
	}
	find := func(_ context.Context, id string) ([]auth.HashedSecret, error) { return database[id], nil }

	verifier, err := auth.NewLookup(auth.LookupOptions{Find: find, Hash: hash, Compare: compare})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(verifier.Verify(context.Background(), "acme", "correct horse"))
	_, err = verifier.Verify(context.Background(), "acme", "guess")
	fmt.Println(errors.Is(err, webhookcfg.ErrInvalidCredentials))
	// Output:
	// {tenant-7 2026} <nil>
	// true
}

// The order matters. With the cache around the throttle, a client that has signed in isn't
// limited by guesses from its own address.
func ExampleNewThrottle() {
	clients, err := auth.NewStatic(auth.Credential{ID: "acme", Secrets: []auth.Secret{auth.NewSecret("a-long-random-secret")}})
	if err != nil {
		log.Fatal(err)
	}
	throttled, err := auth.NewThrottle(clients, &auth.ThrottleOptions{
		PerClientAndSource: auth.Rate{Burst: 2, Every: time.Minute},
	})
	if err != nil {
		log.Fatal(err)
	}
	verifier, err := auth.NewCache(throttled, nil)
	if err != nil {
		log.Fatal(err)
	}

	here := auth.ContextWithSource(context.Background(), netip.MustParseAddr("192.0.2.1"))
	client, err := verifier.Verify(here, "acme", "a-long-random-secret")
	fmt.Println(client.ID, err)
	for range 3 {
		_, err = verifier.Verify(here, "acme", "guess")
	}
	var limit *auth.LimitError
	fmt.Println("limited:", errors.As(err, &limit))
	client, err = verifier.Verify(here, "acme", "a-long-random-secret")
	fmt.Println(client.ID, err)
	// Output:
	// acme <nil>
	// limited: true
	// acme <nil>
}

func ExampleWithSource() {
	clients, err := auth.NewStatic(auth.Credential{ID: "acme", Secrets: []auth.Secret{auth.NewSecret("a-long-random-secret")}})
	if err != nil {
		log.Fatal(err)
	}
	handler, err := webhookcfg.NewHandler(store.NewMemory(), clients, nil)
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux() // has your other routes
	proxies := netip.MustParsePrefix("10.1.0.0/16")
	withSource, err := auth.WithSource(slog.Default(), proxies)
	if err != nil {
		log.Fatal(err)
	}
	server := http.Server{Handler: withSource(handler.Before(mux))}
	_ = server.Close()
}
