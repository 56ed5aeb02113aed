// Package hashes tests [auth.NewLookup] with the password hashes of golang.org/x/crypto.
package hashes_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"strings"
	"testing"

	"golang.org/x/crypto/argon2"
	"golang.org/x/crypto/bcrypt"

	"example.com/go-webhookcfg/auth"
	"example.com/go-webhookcfg/auth/authtest"
	"example.com/go-webhookcfg/webhookcfg"
)

func bcryptHash(secret []byte) ([]byte, error) {
	return bcrypt.GenerateFromPassword(secret, bcrypt.MinCost)
}

func TestBcrypt(t *testing.T) {
	compare := func(hash, secret []byte) error {
		if len(secret) > longest {
			return errors.New("too long")
		}
		return bcrypt.CompareHashAndPassword(hash, secret)
	}
	authtest.Run(t, harness(t, bcryptHash, compare))
}

// TestBcryptCutsSecrets: the suite notices that bcrypt accepts a longer secret than the stored
// one, if that has 72 bytes.
func TestBcryptCutsSecrets(t *testing.T) {
	h := harness(t, bcryptHash, bcrypt.CompareHashAndPassword)
	for _, c := range authtest.Cases() {
		if c.Name != "compares whole secrets" {
			continue
		}
		if err := c.Check(t.Context(), h); err == nil || errors.Is(err, authtest.ErrAbsent) {
			t.Errorf("got %v", err)
		}
		return
	}
	t.Error("the case is missing")
}

func TestArgon2id(t *testing.T) {
	const saltLen = 16
	withSalt := func(salt, secret []byte) []byte {
		return append(bytes.Clone(salt), argon2.IDKey(secret, salt, 1, 64, 1, 32)...)
	}
	authtest.Run(t, harness(t, func(secret []byte) ([]byte, error) {
		return withSalt([]byte(rand.Text()[:saltLen]), secret), nil
	}, func(hash, secret []byte) error {
		if subtle.ConstantTimeCompare(hash, withSalt(hash[:saltLen], secret)) == 0 {
			return errors.New("wrong secret")
		}
		return nil
	}))
}

// longest is how many bytes of a secret bcrypt hashes.
const longest = 72

func harness(t *testing.T, hash func(secret []byte) ([]byte, error), compare func(hash, secret []byte) error) authtest.Harness {
	t.Helper()
	signsIn := []authtest.Credential{
		{ID: "acme", Secret: "old-secret-of-acme", Owner: "acme"},
		{ID: "acme", Secret: "new-secret-of-acme", Owner: "acme"},
		{ID: "acme-2", Secret: "another-secret-of-acme", Owner: "acme"},
		{ID: "long", Secret: strings.Repeat("12-bytes-of-", 6), Owner: "long"},
	}
	database := make(map[string][]auth.HashedSecret)
	for _, c := range signsIn {
		stored, err := hash([]byte(c.Secret))
		if err != nil {
			t.Fatal(err)
		}
		database[c.ID] = append(database[c.ID], auth.HashedSecret{Hash: stored, Client: webhookcfg.Client{ID: c.Owner}})
	}
	lookup := func(find func(context.Context, string) ([]auth.HashedSecret, error)) *auth.Lookup {
		v, err := auth.NewLookup(auth.LookupOptions{Find: find, Hash: hash, Compare: compare})
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	return authtest.Harness{
		Verifier:    lookup(func(_ context.Context, id string) ([]auth.HashedSecret, error) { return database[id], nil }),
		SignsIn:     signsIn,
		Unavailable: lookup(func(context.Context, string) ([]auth.HashedSecret, error) { return nil, errors.New("database down") }),
	}
}
