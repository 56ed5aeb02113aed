package auth

import (
	"cmp"
	"context"
	"fmt"

	"example.com/go-webhookcfg/webhookcfg"
)

// Credential holds the sign-in data of one client.
type Credential struct {
	// ID is the name that the client presents: 1 to 128 visible ASCII characters
	// without a colon, the first of them not #.
	ID string
	// Secrets sign the client in, up to eight, so that a new one can be in use before
	// the old one is removed. They should be generated, for example by [GenerateSecret],
	// since their plain SHA-256 is stored, and have at least 16 characters.
	Secrets []Secret
	// Owner is the [webhookcfg.Client.ID] of the client; empty means ID. Several ids
	// may share one owner, so that an id can be rotated like a secret.
	Owner string
	// Disabled refuses the client, whatever secret it presents.
	Disabled bool
}

// Static is a verifier for a fixed set of clients. It is safe for concurrent use.
// Make one with [NewStatic].
type Static struct {
	set *clientSet
}

// NewStatic returns a verifier for the given credentials, at least one. It stores hashes
// of the secrets, not the secrets. The error for a duplicate or malformed credential
// holds its number, counted from 1.
func NewStatic(credentials ...Credential) (*Static, error) {
	return static(&stdHasher, credentials)
}

// Verify implements [webhookcfg.CredentialVerifier]. It does not block.
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

// Func adapts a function to a [webhookcfg.CredentialVerifier], for clients that are
// held elsewhere: in a database, an LDAP directory, a service. It must satisfy the
// contract of that interface. A nil Func panics when it is called.
type Func func(ctx context.Context, id, secret string) (webhookcfg.Client, error)

// Verify calls f.
func (f Func) Verify(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
	return f(ctx, id, secret)
}
