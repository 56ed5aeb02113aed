package auth

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"

	"example.com/go-webhookcfg/internal/redact"
	"example.com/go-webhookcfg/webhookcfg"
)

// HashedSecret is a secret of a client as you store it.
type HashedSecret struct {
	// Hash is the hash of the secret. If it's empty, nobody can sign in with it.
	Hash []byte
	// Client is the client that the secret signs in.
	Client webhookcfg.Client
}

// LookupOptions configures a [Lookup]. You must set Find, Hash and Compare.
type LookupOptions struct {
	// Find returns the secrets of a client. If the id is unknown or the client is disabled,
	// return no secrets, and either no error or one that wraps
	// [webhookcfg.ErrInvalidCredentials]. Any other error means that the verifier is
	// unavailable.
	//
	// If you revoke a secret during a check, that check can still sign in. Behind a [Cache],
	// the secret can sign in for up to [CacheOptions.TTL]. To revoke it at once, call
	// [Cache.Drop] in every process.
	Find func(ctx context.Context, id string) ([]HashedSecret, error)

	// Hash returns a new hash of a secret. Use the same parameters as for your stored hashes,
	// such as their cost or memory. NewLookup calls it once, to make a decoy. Where a client
	// has fewer than MaxHashes secrets, or doesn't exist, secrets are compared with the decoy
	// instead, so every refusal takes MaxHashes comparisons. If your stored hashes have other
	// parameters, comparing them takes a different time, and that reveals which clients
	// exist.
	Hash func(secret []byte) ([]byte, error)

	// Compare returns nil if the hash belongs to the secret, otherwise an error that contains
	// neither. You can use bcrypt.CompareHashAndPassword, but it ignores everything after the
	// 72nd byte of a secret.
	Compare func(hash, secret []byte) error

	// MaxHashes is how many secrets a client can have, and how many comparisons every refusal
	// takes. It's eight at most. Zero means 2, for an old secret and a new one.
	MaxHashes int

	// SlowHashes is how many checks compare at the same time. Zero means half of GOMAXPROCS,
	// and at least one. Up to 16 times as many wait. Others fail with [ErrBusy].
	SlowHashes int
}

const defaultMaxHashes = 2

// Lookup is a verifier for clients that you store yourself, for example in a database. You
// choose the hash, such as bcrypt or argon2id. It's safe for concurrent use if the functions
// in its options are. Make one with [NewLookup].
type Lookup struct {
	find    func(ctx context.Context, id string) ([]HashedSecret, error)
	compare func(hash, secret []byte) error
	hashes  int
	decoy   []byte
	slots   *slots
}

// NewLookup returns a verifier for clients that you store. It tries out Hash and Compare. It
// fails if a function is missing, if Hash fails, or if Compare refuses the new hash or
// accepts another secret for it.
func NewLookup(options LookupOptions) (*Lookup, error) {
	switch {
	case options.Find == nil || options.Hash == nil || options.Compare == nil:
		return nil, errors.New("auth: LookupOptions: set Find, Hash and Compare")
	case options.MaxHashes < 0 || options.MaxHashes > maxSecrets || options.SlowHashes < 0:
		return nil, errors.New("auth: LookupOptions: MaxHashes must be 0 to 8, and SlowHashes must not be negative")
	}
	decoy, err := options.newDecoy()
	if err != nil {
		return nil, err
	}
	return &Lookup{
		find:    options.Find,
		compare: options.Compare,
		hashes:  cmp.Or(options.MaxHashes, defaultMaxHashes),
		decoy:   decoy,
		slots:   newSlots(options.SlowHashes),
	}, nil
}

// newDecoy returns a hash of a secret that nobody knows.
func (o LookupOptions) newDecoy() ([]byte, error) {
	secret := GenerateSecret().Reveal()
	decoy, err := o.Hash([]byte(secret))
	if err != nil {
		return nil, fmt.Errorf("auth: LookupOptions.Hash fails: %w", err)
	}
	decoy = bytes.Clone(decoy) // the host can reuse its memory
	if err := o.Compare(decoy, []byte(secret)); err != nil {
		return nil, fmt.Errorf("auth: LookupOptions.Compare refuses a secret with its own hash: %w", err)
	}
	if o.Compare(decoy, []byte(GenerateSecret().Reveal())) == nil {
		return nil, errors.New("auth: LookupOptions.Compare accepts a wrong secret")
	}
	return decoy, nil
}

// Verify implements [webhookcfg.CredentialVerifier]. When ctx ends, it returns after the
// current comparison. A refusal wraps the errors of the comparisons, so you find out about
// malformed hashes.
func (l *Lookup) Verify(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
	secrets, err := l.find(ctx, id)
	switch {
	case errors.Is(err, webhookcfg.ErrInvalidCredentials):
		secrets = nil
	case err != nil:
		return webhookcfg.Client{}, fmt.Errorf("auth: looking up a client: %w", err)
	case len(secrets) > l.hashes:
		return webhookcfg.Client{}, redact.Fixed(fmt.Sprintf("auth: client with %d hashes, more than the %d of LookupOptions.MaxHashes", len(secrets), l.hashes))
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
			_ = l.compare(l.decoy, []byte(secret)) // only for its cost
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
