package authtest_test

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"sync/atomic"
	"testing"

	"example.com/go-webhookcfg/auth"
	"example.com/go-webhookcfg/auth/authtest"
	"example.com/go-webhookcfg/webhookcfg"
)

// The verifier has one client. It counts its comparisons, and every refusal takes as many.
func ExampleRun() {
	var t *testing.T // the argument of TestVerifier

	const id, secret = "acme", "a-long-random-secret"
	var comparisons atomic.Int64
	verify := func(ctx context.Context, presentedID, presented string) (webhookcfg.Client, error) {
		if err := ctx.Err(); err != nil {
			return webhookcfg.Client{}, err
		}
		want, got := sha256.Sum256([]byte(secret)), sha256.Sum256([]byte(presented))
		comparisons.Add(1)
		if equal := subtle.ConstantTimeCompare(want[:], got[:]) == 1; !equal || presentedID != id {
			return webhookcfg.Client{}, webhookcfg.ErrInvalidCredentials
		}
		return webhookcfg.Client{ID: id}, nil
	}
	authtest.Run(t, authtest.Harness{
		Verifier: auth.Func(verify),
		SignsIn:  []authtest.Credential{{ID: id, Secret: secret, Owner: id}},
		// You retired this secret, and nobody should bring it back by mistake.
		Refused: []authtest.Credential{{ID: id, Secret: "an-old-long-random-secret"}},
		// A refusal that costs less than others would tell which clients exist.
		Work: comparisons.Load,
	})
}
