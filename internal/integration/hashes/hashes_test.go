// Package hashes tests [auth.NewLookup] with the password hashes of golang.org/x/crypto.
package hashes_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"testing"

	"golang.org/x/crypto/argon2"
	"golang.org/x/crypto/bcrypt"

	"example.com/go-webhookcfg/auth"
	"example.com/go-webhookcfg/auth/authtest"
	"example.com/go-webhookcfg/webhookcfg"
)

func TestBcrypt(t *testing.T) {
	conforms(t, func(secret []byte) ([]byte, error) {
		return bcrypt.GenerateFromPassword(secret, bcrypt.MinCost)
	}, bcrypt.CompareHashAndPassword)
}

func TestArgon2id(t *testing.T) {
	const saltLen = 16
	withSalt := func(salt, secret []byte) []byte {
		return append(bytes.Clone(salt), argon2.IDKey(secret, salt, 1, 64, 1, 32)...)
	}
	conforms(t, func(secret []byte) ([]byte, error) {
		return withSalt([]byte(rand.Text()[:saltLen]), secret), nil
	}, func(hash, secret []byte) error {
		if subtle.ConstantTimeCompare(hash, withSalt(hash[:saltLen], secret)) == 0 {
			return errors.New("wrong secret")
		}
		return nil
	})
}

func conforms(t *testing.T, hash func(secret []byte) ([]byte, error), compare func(hash, secret []byte) error) {
	signsIn := []authtest.Credential{
		{ID: "acme", Secret: "old-secret-of-acme", Owner: "acme"},
		{ID: "acme", Secret: "new-secret-of-acme", Owner: "acme"},
		{ID: "acme-2", Secret: "another-secret-of-acme", Owner: "acme"},
	}
	database := make(map[string][]auth.HashedSecret)
	for _, c := range signsIn {
		stored, err := hash([]byte(c.Secret))
		if err != nil {
			t.Fatal(err)
		}
		database[c.ID] = append(database[c.ID], auth.HashedSecret{Hash: stored, Client: webhookcfg.Client{ID: c.Owner}})
	}
	find := func(_ context.Context, id string) ([]auth.HashedSecret, error) { return database[id], nil }
	verifier, err := auth.NewLookup(auth.LookupOptions{Find: find, Hash: hash, Compare: compare})
	if err != nil {
		t.Fatal(err)
	}
	authtest.Run(t, authtest.Harness{Verifier: verifier, SignsIn: signsIn})
}
