package webhookcfg

import (
	"context"
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"
)

// CredentialVerifier decides which client a pair of credentials signs in. It must be safe for
// concurrent use and return soon after ctx ends; see [Store]. Package auth has
// implementations, and authtest checks any other.
type CredentialVerifier interface {
	// Verify returns the client that id and secret sign in. Both are non-empty,
	// valid UTF-8 without control characters.
	//
	// An unknown id, a wrong secret and a disabled client all give an error that
	// wraps [ErrInvalidCredentials], at the same cost (401). An error with a method
	// RetryAfter() time.Duration asks the client to wait (429). Any other error means
	// that the verifier is unavailable (503). Texts must not hold the secret. The handler
	// logs only the types of your errors, so log the rest yourself.
	Verify(ctx context.Context, id, secret string) (Client, error)
}

// Client is the client that signed in: the owner of configurations. A client signs in with the
// id of a credential, and several credentials, each with its own id, may share one owner. In an
// [Event], Client is the owner's ID, Credential is the id that signed in, and PresentedID is an
// id that was refused.
type Client struct {
	// ID names the owner of configurations in every call of the [Store]. It need
	// not be the id that signed in: several ids may share one owner. It has 1 to 1024
	// bytes of UTF-8, without control characters and not all white space; any other ID
	// with a nil error is treated as a defect (500).
	ID string
	// SecretName names the secret that signed in, for events and logs; empty if it has
	// no name. It must not be derived from the secret.
	SecretName string
}

// Sentinel errors, to be matched with [errors.Is].
var (
	// ErrInvalidCredentials is returned by a verifier for an unknown client, a wrong
	// secret and a disabled client alike. The handler responds 401.
	ErrInvalidCredentials = errors.New("webhookcfg: invalid client credentials")

	// ErrInvalidArgument is returned by a store for a change or a name that no
	// correct caller passes. The handler treats it as a defect and responds 500.
	ErrInvalidArgument = errors.New("webhookcfg: invalid argument")
)

var errClientID = errors.New("webhookcfg: verifier returned a client without a valid ID")

// maxClientID is the longest ID of a [Client], in bytes.
const maxClientID = 1024

// validClientID reports whether every store can keep the ID, and every log show it.
func validClientID(id string) bool {
	return len(id) <= maxClientID && utf8.ValidString(id) && strings.TrimSpace(id) != "" && !strings.ContainsFunc(id, unicode.IsControl)
}
