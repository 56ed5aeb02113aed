package auth_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"example.com/go-webhookcfg/auth"
	"example.com/go-webhookcfg/webhookcfg"
)

func ExampleStatic() {
	verifier, err := auth.Static(
		// Two secrets, while the client switches from one to the other.
		auth.Credential{ID: "acme", Secrets: []string{"old-secret", "new-secret"}},
		// A second id for the same owner, to replace the first one.
		auth.Credential{ID: "acme-2", Secrets: []string{"another-secret"}, Owner: "acme"},
	)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	fmt.Println(verifier.Verify(ctx, "acme", "new-secret"))
	fmt.Println(verifier.Verify(ctx, "acme-2", "another-secret"))
	_, err = verifier.Verify(ctx, "acme", "guess")
	fmt.Println(errors.Is(err, webhookcfg.ErrInvalidCredentials))
	// Output:
	// {acme} <nil>
	// {acme} <nil>
	// true
}

// A function can call another service or, as here, change the result of a verifier: its
// clients own configurations under names that the host chooses.
func ExampleFunc() {
	clients, err := auth.Static(auth.Credential{ID: "acme", Secrets: []string{"s3cret"}})
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
	fmt.Println(verifier.Verify(context.Background(), "acme", "s3cret"))
	// Output: {tenant-7/acme} <nil>
}

func ExampleOpenFile() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "credentials")

	// printf %s open-sesame | sha256sum
	const text = `# clients
aladdin:sha256:d7ecdf25eaf3deba0f2628771dbdd22d4138ab6cf38f91ed02a2ca0dec7c8ab7
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		log.Fatal(err)
	}
	file, err := auth.OpenFile(path, &auth.FileOptions{Poll: 10 * time.Second})
	if err != nil {
		log.Fatal(err)
	}
	defer file.Close()
	fmt.Println(file.Verify(context.Background(), "aladdin", "open-sesame"))
	// Output: {aladdin} <nil>
}

// The order matters: with the cache around the throttle, a client that has signed in is
// not limited by guesses from the same address.
func ExampleThrottle() {
	clients, err := auth.Static(auth.Credential{ID: "acme", Secrets: []string{"s3cret"}})
	if err != nil {
		log.Fatal(err)
	}
	throttled, err := auth.Throttle(clients, &auth.ThrottleOptions{
		PerClientAndSource: auth.Rate{Burst: 2, Every: time.Minute},
	})
	if err != nil {
		log.Fatal(err)
	}
	verifier, err := auth.Cache(throttled, nil)
	if err != nil {
		log.Fatal(err)
	}

	here := auth.ContextWithSource(context.Background(), netip.MustParseAddr("192.0.2.1"))
	fmt.Println(verifier.Verify(here, "acme", "s3cret"))
	for range 3 {
		_, err = verifier.Verify(here, "acme", "guess")
	}
	var limit *auth.LimitError
	fmt.Println("limited:", errors.As(err, &limit))
	fmt.Println(verifier.Verify(here, "acme", "s3cret"))
	// Output:
	// {acme} <nil>
	// limited: true
	// {acme} <nil>
}

func ExampleWithSource() {
	mux := http.NewServeMux() // with the handler registered on it
	proxies := netip.MustParsePrefix("10.1.0.0/16")
	server := http.Server{Handler: auth.WithSource(mux, proxies)}
	_ = server.Close()
}
