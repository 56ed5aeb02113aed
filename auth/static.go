package auth

import (
	"cmp"
	"context"
	"fmt"

	"example.com/go-webhookcfg/webhookcfg"
)

// Credential is how one client signs in.
type Credential struct {
	// ID is the name that the client presents: 1 to 128 visible ASCII characters without a
	// colon, not starting with #.
	ID string
	// Secrets are the client's secrets, up to eight, so you can add a new one before you
	// remove the old one. They need at least 16 characters, and should be generated, for
	// example with [GenerateSecret]: only a plain SHA-256 protects them.
	Secrets []Secret
	// Owner is the [webhookcfg.Client.ID] of the client. Empty means ID. If you give several
	// ids the same owner, you can rotate an id like a secret.
	Owner string
	// Disabled refuses the client, even with the right secret.
	Disabled bool
}

// Static is a verifier for a fixed set of clients. It's safe for concurrent use. Make one
// with [NewStatic].
type Static struct {
	set *clientSet
}

// NewStatic returns a verifier for the given credentials. It needs at least one. It keeps
// hashes of the secrets, not the secrets. If a credential is a duplicate or malformed, the
// error gives its number, counted from 1.
func NewStatic(credentials ...Credential) (*Static, error) {
	return static(&stdHasher, credentials)
}

// Verify implements [webhookcfg.CredentialVerifier]. It doesn't block.
func (s *Static) Verify(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
	return s.set.verify(ctx, id, secret)
}

func static(h *hasher, credentials []Credential) (*Static, error) {
	if len(credentials) == 0 {
		return nil, fmt.Errorf("auth: %w", errNoClients)
	}
	b := builder{}
	for i, c := range credentials {
		if err := b.addCredential(i+1, c); err != nil {
			return nil, fmt.Errorf("auth: credential %d: %w", i+1, err)
		}
	}
	set, pos, err := b.build(h, nil)
	if err != nil {
		return nil, fmt.Errorf("auth: credential %d: %w", pos, err)
	}
	return &Static{set}, nil
}

func (b builder) addCredential(pos int, c Credential) error {
	e := fileEntry{id: c.ID, kind: kindDisabled, owner: cmp.Or(c.Owner, c.ID), disabled: c.Disabled}
	for _, name := range []string{e.id, e.owner} {
		if err := checkName(name); err != nil {
			return err
		}
	}
	if b[e.id] != nil {
		return errDuplicate
	}
	if len(c.Secrets) == 0 {
		return b.add(pos, e)
	}
	e.kind = kindSHA256
	for _, secret := range c.Secrets {
		if err := checkSecret(secret.Reveal(), minGenerated); err != nil {
			return err
		}
		e.sum = sum(secret.Reveal())
		if err := b.add(pos, e); err != nil {
			return err
		}
	}
	return nil
}

// Func makes a [webhookcfg.CredentialVerifier] of your function, for clients in an LDAP
// directory or another service, for example. The function must satisfy the contract of that
// interface: test it with package [example.com/go-webhookcfg/auth/authtest]. A nil Func panics
// when it's called.
type Func func(ctx context.Context, id, secret string) (webhookcfg.Client, error)

// Verify calls f.
func (f Func) Verify(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
	return f(ctx, id, secret)
}
