// Package authtest tests your [webhookcfg.CredentialVerifier]. Run it from a test:
//
//	func TestVerifier(t *testing.T) {
//		authtest.Run(t, authtest.Harness{
//			Verifier: ldap.New(directory),
//			SignsIn:  []authtest.Credential{{ID: "acme", Secret: "s3cret", Owner: "acme"}},
//		})
//	}
//
// The suite makes about three hundred calls per credential, so make your hashes cheap for the
// test.
//
// # What a verifier must do
//
// It signs in the owner of a valid credential. It refuses every other credential with an error
// that wraps [webhookcfg.ErrInvalidCredentials] and has no RetryAfter, and returns no client.
// The suite tries ids and secrets that nearly match: in another letter case or spelling, cut or
// padded, with blanks or invisible characters, escaped, encoded or hashed, as a pattern or a
// piece of a query, with another client's secret, or divided at another byte. An id that is only
// equal to a directory, a router or a mail server counts as another one: each spelling that
// signed in would have its own number of guesses in an
// [example.com/go-webhookcfg/auth.Throttle].
//
// All refusals of secrets with the same length cost the same. An outage isn't a refusal. If
// its context has ended, or ends during the call, a verifier returns soon. It can fail then,
// but it doesn't sign in a wrong client or refuse a valid credential, neither for this caller
// nor for another.
//
// No error contains a secret, presented or stored, or a part of it, not even encoded or as a
// plain hash. Neither does [webhookcfg.Client.SecretName].
//
// A verifier is safe for concurrent use, and doesn't panic.
//
// # What isn't tested
//
// The suite compares the costs that your [Harness.Work] counts. It doesn't measure time,
// since that depends on the machine. It knows many ways in which two names can be equal, but
// perhaps not all of your directory's: add credentials of that kind to [Harness.Refused].
package authtest

import (
	"errors"
	"testing"

	"example.com/go-webhookcfg/webhookcfg"
)

// Harness tells the suite about your verifier.
type Harness struct {
	// Verifier is the verifier to test. It must not limit failed sign-ins.
	Verifier webhookcfg.CredentialVerifier

	// SignsIn has credentials that sign in, at least one. The suite covers more if you give
	// it several kinds: a client with two secrets, two ids of one owner, two owners. Give it
	// a secret as long as your clients can have, or at least 72 bytes, since many hashes and
	// columns ignore the rest of a long one. Use generated secrets: the suite looks for parts
	// of them in your errors and names.
	SignsIn []Credential

	// Refused has credentials of existing clients that must be refused, such as the correct
	// secret of a disabled client, or a retired secret. Without any, that isn't tested.
	Refused []Credential

	// Unavailable is the same verifier while it can't reach what it depends on, such as a
	// directory whose server is down. If it's nil, the suite can't test that an outage is no
	// refusal: go test -v then reports a skipped test.
	Unavailable webhookcfg.CredentialVerifier

	// Work returns the number of costly operations so far, such as rounds of a hash. If it's
	// nil, the suite can't test that all refusals cost the same: go test -v then reports a
	// skipped test.
	Work func() int64
}

// Credential is an id and a secret that the suite presents to your verifier.
type Credential struct {
	// ID and Secret are the arguments of Verify.
	ID, Secret string
	// Owner is the ID of the client that it signs in. [Harness.Refused] doesn't need it.
	Owner string
}

// Run runs every case as a subtest.
func Run(t *testing.T, h Harness) {
	t.Helper()
	if h.Verifier == nil || len(h.SignsIn) == 0 {
		t.Fatal("authtest: Harness: set Verifier and SignsIn")
	}
	for _, c := range Cases() {
		t.Run(c.Name, func(t *testing.T) {
			err := c.Check(t.Context(), h)
			if errors.Is(err, ErrAbsent) {
				t.Skip(err)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
}
