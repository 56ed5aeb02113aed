package auth

import (
	"context"

	"example.com/go-webhookcfg/webhookcfg"
)

// Func is a function that serves as a [webhookcfg.CredentialVerifier], the way in
// for clients that live elsewhere: a database, a directory, a service. It must keep
// what that interface asks. A nil Func panics when it is called.
type Func func(ctx context.Context, id, secret string) (webhookcfg.Client, error)

// Verify calls f.
func (f Func) Verify(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
	return f(ctx, id, secret)
}
