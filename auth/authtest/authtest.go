// Package authtest is a conformance suite for implementations of
// [webhookcfg.CredentialVerifier]. Run it from a test:
//
//	func TestVerifier(t *testing.T) {
//		authtest.Run(t, authtest.Harness{
//			Verifier: ldap.New(directory),
//			SignsIn:  []authtest.Credential{{ID: "acme", Secret: "s3cret", Owner: "acme"}},
//		})
//	}
//
// # Requirements
//
// A credential signs in its owner. Every other one is refused with an error that wraps
// [webhookcfg.ErrInvalidCredentials], has no RetryAfter and comes with no client: ids and
// secrets that differ in any byte, also in letter case, blanks or Unicode form, patterns
// and quotes, an escaped id, secrets longer than 4 KiB, the plain hash of a secret, the
// secret of another client, and an id and a secret that are divided at another byte. If
// several spellings of an id signed in, each of them would have its own number of guesses
// in the Throttle of package auth.
//
// All refusals cost the same. When its context has ended, or ends during the call, a
// verifier returns soon, signs in no wrong client and refuses no valid credential. No error
// contains a secret, presented or stored, as it is, encoded or as a plain hash, and neither
// does Client.SecretName. A verifier is safe for concurrent use, and does not panic.
//
// # Limits
//
// Cost is what [Harness.Work] counts; time is not measured, as it depends on the machine.
// A context that ends while the verifier waits for something else is not simulated. The
// suite makes about a hundred calls per credential: make hashes cheap for the test.
package authtest

import (
	"context"
	"errors"
	"testing"

	"example.com/go-webhookcfg/webhookcfg"
)

// Harness describes the verifier under test to the suite.
type Harness struct {
	// Verifier is the verifier under test. It must not limit failed sign-ins.
	Verifier webhookcfg.CredentialVerifier

	// SignsIn holds credentials that sign in, at least one. The suite covers more if
	// they are of several kinds: a client with two secrets, two ids of one owner, two
	// owners.
	SignsIn []Credential

	// Refused holds credentials of existing clients that must be refused: disabled
	// clients with their correct secret, retired secrets.
	Refused []Credential

	// Work returns the number of costly operations so far, such as rounds of a hash. If
	// nil, the test that all refusals cost the same is skipped, which go test -v reports.
	Work func() int64
}

// Credential is a credential that the suite presents to the verifier.
type Credential struct {
	// ID and Secret are the arguments of Verify.
	ID, Secret string
	// Owner is the ID of the client that it signs in; ignored in Harness.Refused.
	Owner string
}

// ErrAbsent is wrapped by the error of a case that does not apply, because the harness
// lacks what it needs.
var ErrAbsent = errors.New("authtest: absent from the harness")

// Case is one requirement on a verifier.
type Case struct {
	// Name is the requirement in words.
	Name string
	// Check returns nil if the verifier of the harness meets the requirement, and otherwise
	// an error, which may wrap [ErrAbsent]. Its errors contain no secret.
	Check func(ctx context.Context, h Harness) error
}

// Run runs every case against the harness as a subtest.
func Run(t *testing.T, h Harness) {
	t.Helper()
	if h.Verifier == nil || len(h.SignsIn) == 0 {
		t.Fatal("authtest: harness without a Verifier or without SignsIn")
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

// Cases returns the cases of the suite, for use without a [testing.T].
func Cases() []Case {
	return []Case{
		{"signs in the owner", signsInOwner},
		{"refuses wrong secrets", refusesWrongSecrets},
		{"refuses unknown clients", refusesUnknownClients},
		{"refuses disabled clients and retired secrets", refusesDisabledAndRetired},
		{"keeps clients apart", keepsClientsApart},
		{"does the same work for every refusal", costsTheSame},
		{"errors contain no secret", containsNoSecret},
		{"gives no wrong verdict after the context has ended", endedContext},
		{"returns soon after the context has ended", returnsSoon},
		{"is safe for concurrent use", concurrentUse},
	}
}
