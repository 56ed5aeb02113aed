package auth

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"

	"example.com/go-webhookcfg/webhookcfg"
)

// Credential holds the sign-in data of one client. Printed, logged or marshalled as
// text, it shows only its ID; in whatever value it is, neither reflection nor an encoder
// reaches its secrets.
type Credential struct {
	// ID is the name that the client presents: 1 to 128 visible ASCII characters
	// without a colon, the first of them not #.
	ID string
	// Secrets returns the secrets that sign the client in, up to eight, so that a new
	// one can be in use before the old one is removed; see [Secrets]. They should be
	// generated, for example by [GenerateSecret], since their plain SHA-256 is stored, and
	// have at least 16 characters. Nil means none.
	Secrets func() []string
	// Owner is the [webhookcfg.Client.ID] of the client; empty means ID. Several ids
	// may share one owner, so that an id can be rotated like a secret.
	Owner string
	// Disabled refuses the client, whatever secret it presents.
	Disabled bool
}

// Secrets returns a function that returns the given secrets, for a [Credential]. A
// function hides them where methods do not: fmt prints an unexported field without
// calling its methods.
func Secrets(secrets ...string) func() []string {
	return func() []string { return secrets }
}

// Format implements [fmt.Formatter]: every verb writes only the ID.
func (c Credential) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, c.ID) }

// LogValue implements [slog.LogValuer]: it returns the ID.
func (c Credential) LogValue() slog.Value { return slog.StringValue(c.ID) }

// MarshalText implements [encoding.TextMarshaler]: it returns the ID.
func (c Credential) MarshalText() ([]byte, error) { return []byte(c.ID), nil }

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
	var secrets []string
	if c.Secrets != nil {
		secrets = c.Secrets()
	}
	if len(secrets) == 0 {
		return b.add(pos, e)
	}
	e.kind = kindSHA256
	for _, secret := range secrets {
		if err := checkSecret(secret, minGenerated); err != nil {
			return err
		}
		e.sum = sum(secret)
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
