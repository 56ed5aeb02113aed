// Package authtest is a conformance suite for verifiers of client credentials:
// whoever writes a [webhookcfg.CredentialVerifier] runs it in a test of its own.
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

// Harness is a verifier and what the suite has to know of it.
type Harness struct {
	// Verifier is what is tested. It must not limit how often sign-ins fail.
	Verifier webhookcfg.CredentialVerifier

	// SignsIn are credentials that sign in, at least one. The more kinds there are (a
	// client with two secrets, two ids of one owner, two owners), the more is tested.
	SignsIn []Credential

	// Refused are credentials of clients that exist and yet must not sign in: disabled
	// clients with their right secret, retired secrets.
	Refused []Credential

	// Work counts the costly operations so far, such as rounds of a hash; nil if it is
	// not known. With it the suite tests that all refusals cost the same.
	Work func() int64
}

// Credential is what a client presents.
type Credential struct {
	// ID and Secret are what is presented.
	ID, Secret string
	// Owner is the client that it signs in; of no meaning for one that is refused.
	Owner string
}

// Case is one thing that is asked of a verifier.
type Case struct {
	// Name says what is asked.
	Name string
	// Check returns nil if the verifier of the harness does it. Its errors hold no
	// secret.
	Check func(ctx context.Context, h Harness) error
}

// Run runs every case against the harness as a subtest.
func Run(t *testing.T, h Harness) {
	t.Helper()
	if h.Verifier == nil || len(h.SignsIn) == 0 {
		t.Fatal("authtest: the harness has no verifier, or nothing that signs in")
	}
	for _, c := range Cases() {
		t.Run(c.Name, func(t *testing.T) {
			if err := c.Check(t.Context(), h); err != nil {
				t.Error(err)
			}
		})
	}
}

// Cases returns the cases of the suite, for those who run them without a
// [testing.T].
func Cases() []Case {
	return []Case{
		{"signs in the owner", signsInOwner},
		{"refuses wrong secrets", refusesWrongSecrets},
		{"refuses unknown clients", refusesUnknownClients},
		{"refuses what is disabled or retired", refusesRefused},
		{"keeps clients apart", keepsClientsApart},
		{"does the same work for every refusal", worksAlike},
		{"errors hold no secret", hidesSecrets},
		{"takes an ended context for no verdict", endedContext},
		{"is safe for concurrent use", concurrentUse},
	}
}
