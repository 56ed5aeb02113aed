// Package authtest is a conformance suite for implementations of
// [webhookcfg.CredentialVerifier]. Run it from a test:
//
//	func TestVerifier(t *testing.T) {
//		authtest.Run(t, authtest.Harness{
//			Verifier: ldap.New(directory),
//			SignsIn:  []authtest.Credential{{ID: "acme", Secret: "s3cret", Owner: "acme"}},
//		})
//	}
package authtest

import (
	"context"
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
	// nil, the suite does not test that all refusals cost the same.
	Work func() int64
}

// Credential is a credential that the suite presents to the verifier.
type Credential struct {
	// ID and Secret are the arguments of Verify.
	ID, Secret string
	// Owner is the ID of the client that it signs in; ignored in Harness.Refused.
	Owner string
}

// Case is one requirement on a verifier.
type Case struct {
	// Name is the requirement in words.
	Name string
	// Check returns nil if the verifier of the harness meets the requirement. Its errors
	// contain no secret.
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
			if err := c.Check(t.Context(), h); err != nil {
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
		{"is safe for concurrent use", concurrentUse},
	}
}
