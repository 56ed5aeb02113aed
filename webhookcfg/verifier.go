package webhookcfg

import (
	"context"
	"errors"
)

// CredentialVerifier checks an id and a secret, and says which client they belong to. Package
// [example.com/go-webhookcfg/auth] has implementations. If you write your own, it must be safe
// for concurrent use and return soon after ctx ends, like a [Store]. Package
// [example.com/go-webhookcfg/auth/authtest] checks it.
//
// If your clients already sign in to your service, with a Bearer key or a session, don't parse
// their requests to call [Handler.Set]. Copy the example: its middleware passes on who they
// are, and they set their webhooks with that.
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

// You can match these errors with [errors.Is].
var (
	// ErrInvalidCredentials means that a verifier refused the credentials: an unknown client,
	// a wrong secret or a disabled client. The handler responds 401.
	ErrInvalidCredentials = errors.New("webhookcfg: invalid client credentials")

	// ErrInvalidArgument means that a caller passed an invalid change or name, so the caller
	// has a bug. Stores return it, and the handler treats it as a defect (500).
	ErrInvalidArgument = errors.New("webhookcfg: invalid argument")
)
