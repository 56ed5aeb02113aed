package auth

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"

	"example.com/go-webhookcfg/webhookcfg"
)

// HashedSecret is a secret of a client as the host stores it.
type HashedSecret struct {
	// Hash is the hash of the secret; empty means that nothing signs in with it.
	Hash []byte
	// Client is the client that the secret signs in.
	Client webhookcfg.Client
}

// LookupOptions configures a [Lookup] verifier. The zero value of every field is a safe
// default.
type LookupOptions struct {
	// MaxHashes is the number of comparisons of every refusal, and so the largest number
	// of secrets that a client may have, up to eight; zero means 2, for an old secret and
	// a new one.
	MaxHashes int

	// SlowHashes bounds the checks that compare at the same time. Up to 16 times as many
	// wait, others fail with [ErrBusy]. Zero means half of GOMAXPROCS, and at least one.
	SlowHashes int
}

const defaultMaxHashes = 2

// Lookup is a verifier for clients that the host stores. It is safe for concurrent use
// if the functions of the host are. Make one with [NewLookup].
type Lookup struct {
	find    func(ctx context.Context, id string) ([]HashedSecret, error)
	compare func(hash, secret []byte) error
	hashes  int
	dummy   []byte
	slots   *slots
}

// NewLookup returns a verifier for clients that the host stores, for example in a database,
// with hashes of a kind that the host chooses, such as bcrypt or argon2id.
//
// The function find returns the secrets of a client. It returns none, and no error or
// one that wraps [webhookcfg.ErrInvalidCredentials], if the id is unknown or the client
// disabled; any other error means that the verifier is unavailable. A secret that it
// returned before it was revoked may still sign in when the comparison ends.
//
// The function compare returns nil if a hash is that of a secret, otherwise an error,
// which must hold neither. bcrypt.CompareHashAndPassword is such a function; it ignores
// what follows the 72nd byte of a secret. The function hash returns a new hash of a
// secret. NewLookup calls it once, for a hash to compare with where a client has fewer than
// MaxHashes: so every refusal takes as many comparisons, whether the client exists or
// not. They take the same time if all stored hashes have the parameters, such as the
// cost or the memory, that hash uses; those of other hashes reveal that a client exists.
//
// NewLookup fails if hash does, or if compare refuses the new hash or accepts another
// secret for it. Nil options mean the zero options.
func NewLookup(
	find func(ctx context.Context, id string) ([]HashedSecret, error),
	hash func(secret []byte) ([]byte, error),
	compare func(hash, secret []byte) error,
	options *LookupOptions,
) (*Lookup, error) {
	if options == nil {
		options = &LookupOptions{}
	}
	switch {
	case find == nil || hash == nil || compare == nil:
		return nil, errors.New("auth: nil function of a lookup")
	case options.MaxHashes < 0 || options.MaxHashes > maxSecrets || options.SlowHashes < 0:
		return nil, errors.New("auth: lookup option out of range")
	}
	secret := GenerateSecret().Reveal()
	dummy, err := hash([]byte(secret))
	if err != nil {
		return nil, fmt.Errorf("auth: hashing a new secret: %w", err)
	}
	dummy = bytes.Clone(dummy)
	if err := compare(dummy, []byte(secret)); err != nil {
		return nil, fmt.Errorf("auth: comparing a new secret with its hash: %w", err)
	}
	if compare(dummy, []byte(GenerateSecret().Reveal())) == nil {
		return nil, errors.New("auth: a hash matches two secrets")
	}
	return &Lookup{
		find:    find,
		compare: compare,
		hashes:  cmp.Or(options.MaxHashes, defaultMaxHashes),
		dummy:   dummy,
		slots:   newSlots(options.SlowHashes),
	}, nil
}

// Verify implements [webhookcfg.CredentialVerifier]. It completes the current comparison
// when ctx ends. A refusal wraps the errors of the comparisons, since one of them may
// report a malformed hash.
func (l *Lookup) Verify(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
	secrets, err := l.find(ctx, id)
	switch {
	case errors.Is(err, webhookcfg.ErrInvalidCredentials):
		secrets = nil
	case err != nil:
		return webhookcfg.Client{}, fmt.Errorf("auth: looking up a client: %w", err)
	case len(secrets) > l.hashes:
		return webhookcfg.Client{}, fmt.Errorf("auth: client with %d hashes, more than the %d of LookupOptions.MaxHashes", len(secrets), l.hashes)
	}
	if err := l.slots.acquire(ctx); err != nil {
		return webhookcfg.Client{}, fmt.Errorf("auth: comparing a secret: %w", err)
	}
	defer l.slots.release()
	reasons := []error{webhookcfg.ErrInvalidCredentials}
	for i := range l.hashes {
		if err := ctx.Err(); err != nil {
			return webhookcfg.Client{}, fmt.Errorf("auth: comparing a secret: %w", err)
		}
		if i >= len(secrets) || len(secrets[i].Hash) == 0 {
			_ = l.compare(l.dummy, []byte(secret)) // only for its cost
			continue
		}
		err := l.compare(secrets[i].Hash, []byte(secret))
		if err == nil {
			return secrets[i].Client, nil
		}
		reasons = append(reasons, err)
	}
	return webhookcfg.Client{}, errors.Join(reasons...)
}
