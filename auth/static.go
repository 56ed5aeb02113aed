package auth

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"

	"example.com/go-webhookcfg/webhookcfg"
)

// Credential says how one client signs in. However it is printed, logged or
// marshalled, it shows its ID alone.
type Credential struct {
	// ID is what the client signs in with: 1 to 128 visible ASCII characters
	// without a colon, the first of them not #.
	ID string
	// Secrets all sign the client in, up to eight, so that a new one can be in use
	// before the old one is dropped. They are for generated secrets, such as those of
	// [NewSecret]: what is kept of them is their plain SHA-256.
	Secrets []string
	// Owner is the [webhookcfg.Client.ID] of who signs in; "" means ID. Several
	// ids may share one owner, so that an id can be replaced like a secret.
	Owner string
	// Disabled refuses the client, whatever it presents.
	Disabled bool
}

// Format implements [fmt.Formatter]: every verb writes the ID alone.
func (c Credential) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, c.ID) }

// LogValue implements [slog.LogValuer] with the ID alone.
func (c Credential) LogValue() slog.Value { return slog.StringValue(c.ID) }

// MarshalText implements [encoding.TextMarshaler] with the ID alone.
func (c Credential) MarshalText() ([]byte, error) { return []byte(c.ID), nil }

// Clients is a verifier for a set of clients that never changes. It is made by
// [Static] and safe for concurrent use.
type Clients struct {
	set *clientSet
}

// Static returns a verifier for the given credentials, at least one. It keeps
// hashes of the secrets, not the secrets. The error of a repeated or malformed
// credential says which one it is, counted from 1.
func Static(credentials ...Credential) (*Clients, error) {
	return static(&stdHasher, credentials)
}

// Verify implements [webhookcfg.CredentialVerifier]. It does not block.
func (c *Clients) Verify(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
	return c.set.verify(ctx, id, secret)
}

func static(h *hasher, credentials []Credential) (*Clients, error) {
	if len(credentials) == 0 {
		return nil, fmt.Errorf("auth: %w", errNoClients)
	}
	b := builder{}
	for i, c := range credentials {
		if err := b.addCredential(i+1, c); err != nil {
			return nil, fmt.Errorf("auth: credential %d: %w", i+1, err)
		}
	}
	if pos := b.incomplete(); pos > 0 {
		return nil, fmt.Errorf("auth: credential %d: %w", pos, errNoSecret)
	}
	return &Clients{b.build(h, nil)}, nil
}

func (b builder) addCredential(pos int, c Credential) error {
	all, err := c.entries()
	if err != nil {
		return err
	}
	for _, e := range all {
		if err := b.add(pos, e); err != nil {
			return err
		}
	}
	return nil
}

// entries returns what c says, as the lines of a credential file would. They name the
// owner always, so that a second credential for the ID repeats something.
func (c Credential) entries() ([]fileEntry, error) {
	owner := cmp.Or(c.Owner, c.ID)
	for _, name := range []string{c.ID, owner} {
		if err := checkName(name); err != nil {
			return nil, err
		}
	}
	all := []fileEntry{{id: c.ID, kind: kindOwner, owner: owner}}
	if c.Disabled {
		all = append(all, fileEntry{id: c.ID, kind: kindDisabled})
	}
	for _, secret := range c.Secrets {
		if err := checkSecret(secret); err != nil {
			return nil, err
		}
		all = append(all, fileEntry{id: c.ID, kind: kindSHA256, hash: secretHash{sum: sum(secret)}})
	}
	return all, nil
}

// Func is a function that serves as a [webhookcfg.CredentialVerifier], the way in
// for clients that live elsewhere: a database, a directory, a service. It must keep
// what that interface asks. A nil Func panics when it is called.
type Func func(ctx context.Context, id, secret string) (webhookcfg.Client, error)

// Verify calls f.
func (f Func) Verify(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
	return f(ctx, id, secret)
}
