package webhookcfg

import (
	"context"
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"
)

// CredentialVerifier checks an id and a secret, and says which client they belong to. Package
// auth has implementations. If you write your own, it must be safe for concurrent use and
// return soon after ctx ends, like a [Store]. Package authtest checks it.
type CredentialVerifier interface {
	// Verify returns the client that id and secret belong to. Both are non-empty, valid UTF-8
	// without control characters.
	//
	// For an unknown id, a wrong secret or a disabled client, return an error that wraps
	// [ErrInvalidCredentials] (401), and take the same time for each of the three. If your
	// error has a method RetryAfter() time.Duration, the client is asked to wait (429). Any
	// other error means that the verifier is unavailable (503).
	//
	// Your errors must not contain the secret. The handler only logs their types, so log the
	// rest yourself.
	Verify(ctx context.Context, id, secret string) (Client, error)
}

// Client is the client that signed in. It owns webhooks. Several credentials, each with its
// own id, can share one owner: in an [Event], Client is the owner's ID, Credential is the id
// that signed in, and PresentedID is an id that was refused.
type Client struct {
	// ID names the owner of the webhooks in every call of the [Store]. It doesn't have to be
	// the id that signed in.
	//
	// It has 1 to 1024 bytes of UTF-8 without control characters, and not only white space.
	// If you return any other ID with a nil error, the handler treats it as a defect (500).
	ID string
	// SecretName names the secret that signed in, for events and logs. It can be empty. Don't
	// derive it from the secret.
	SecretName string
}

// You can match these errors with [errors.Is].
var (
	// ErrInvalidCredentials means that a verifier refused the credentials: an unknown client,
	// a wrong secret or a disabled client. The handler responds 401.
	ErrInvalidCredentials = errors.New("webhookcfg: invalid client credentials")

	// ErrInvalidArgument means that a caller passed an invalid change or name, so the caller
	// has a bug. Stores return it, and the handler treats it as a defect (500).
	ErrInvalidArgument = errors.New("webhookcfg: invalid argument")
)

var errClientID = errors.New("webhookcfg: the verifier returned a client with an invalid ID: see Client.ID")

// maxClientID is the longest ID of a [Client], in bytes.
const maxClientID = 1024

// validClientID reports whether every store can keep the ID, and every log can show it.
func validClientID(id string) bool {
	return len(id) <= maxClientID && utf8.ValidString(id) && strings.TrimSpace(id) != "" && !strings.ContainsFunc(id, unicode.IsControl)
}
