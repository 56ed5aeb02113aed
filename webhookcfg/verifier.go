package webhookcfg

import (
	"context"
	"errors"
)

// CredentialVerifier decides who a pair of credentials signs in. It must be safe
// for concurrent use and return soon after ctx ends.
type CredentialVerifier interface {
	// Verify returns the client that id and secret sign in. Both are non-empty,
	// valid UTF-8 without control characters.
	//
	// An unknown id, a wrong secret and a disabled client all give an error that
	// wraps [ErrInvalidCredentials], at the same cost (401). An error with a method
	// RetryAfter() time.Duration asks the caller to wait (429). Any other error
	// says that the verifier cannot answer (503). Texts must not hold the secret.
	Verify(ctx context.Context, id, secret string) (Client, error)
}

// Client is who signed in.
type Client struct {
	// ID names the owner of configurations in every call of the [Store]. It need
	// not be the id that signed in: several ids may share one owner. An empty ID
	// beside a nil error is taken for a defect (500).
	ID string
}

// Sentinel errors, to be found with [errors.Is].
var (
	// ErrInvalidCredentials is a verifier's answer to an unknown client, a wrong
	// secret and a disabled client alike. The handler answers 401.
	ErrInvalidCredentials = errors.New("webhookcfg: invalid client credentials")

	// ErrInvalidArgument is a store's answer to a change or a name that no correct
	// caller passes. The handler takes it for a defect and answers 500.
	ErrInvalidArgument = errors.New("webhookcfg: invalid argument")
)
