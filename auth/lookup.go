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

// HashedSecret is a secret of a client as the host stores it.
type HashedSecret struct {
	// Hash is the hash of the secret; empty means that nothing signs in with it.
	Hash []byte
	// Client is the client that the secret signs in.
	Client webhookcfg.Client
}

// LookupOptions configures a [Lookup]. Find, Hash and Compare are required.
type LookupOptions struct {
	// Find returns the secrets of a client. It returns none, and no error or one that
	// wraps [webhookcfg.ErrInvalidCredentials], if the id is unknown or the client
	// disabled. Any other error means that the verifier is unavailable. A secret that
	// Find returned before it was revoked may still sign in when the comparison ends. Behind
	// a [Cache], a revoked secret signs in for up to [CacheOptions.TTL]: call [Cache.Drop],
	// in every process, to revoke it at once.
	Find func(ctx context.Context, id string) ([]HashedSecret, error)

	// Hash returns a new hash of a secret, with the parameters of the stored hashes, such
	// as their cost or memory. NewLookup calls it once, for a decoy: a hash to compare
	// with where a client has fewer than MaxHashes. So every refusal takes as many
	// comparisons, whether the client exists or not. Stored hashes with other parameters
	// take another time, which reveals that the client exists.
	Hash func(secret []byte) ([]byte, error)

	// Compare returns nil if a hash is the hash of a secret, otherwise an error, which
	// must hold neither. bcrypt.CompareHashAndPassword is such a function; it ignores
	// what follows the 72nd byte of a secret.
	Compare func(hash, secret []byte) error

	// MaxHashes is the number of comparisons of every refusal, and so the largest number
	// of secrets that a client may have, up to eight; zero means 2, for an old secret and
	// a new one.
	MaxHashes int

	// SlowHashes bounds the checks that compare at the same time. Up to 16 times as many
	// wait, others fail with [ErrBusy]. Zero means half of GOMAXPROCS, and at least one.
	SlowHashes int
}

const defaultMaxHashes = 2

// Lookup is a verifier for clients that the host stores, for example in a database, with
// hashes of a kind that the host chooses, such as bcrypt or argon2id. It is safe for
// concurrent use if the functions of its options are. Make one with [NewLookup].
type Lookup struct {
	find    func(ctx context.Context, id string) ([]HashedSecret, error)
	compare func(hash, secret []byte) error
	hashes  int
	decoy   []byte
	slots   *slots
}

// NewLookup returns a verifier for clients that the host stores. It fails if a required
// function is missing, if Hash fails, and if Compare refuses the new hash or accepts
// another secret for it.
func NewLookup(options LookupOptions) (*Lookup, error) {
	switch {
	case options.Find == nil || options.Hash == nil || options.Compare == nil:
		return nil, errors.New("auth: LookupOptions without Find, Hash or Compare: all three are required")
	case options.MaxHashes < 0 || options.MaxHashes > maxSecrets || options.SlowHashes < 0:
		return nil, errors.New("auth: lookup option out of range")
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
		return nil, fmt.Errorf("auth: hashing a new secret: %w", err)
	}
	decoy = bytes.Clone(decoy) // the host may reuse its memory
	if err := o.Compare(decoy, []byte(secret)); err != nil {
		return nil, fmt.Errorf("auth: comparing a new secret with its hash: %w", err)
	}
	if o.Compare(decoy, []byte(GenerateSecret().Reveal())) == nil {
		return nil, errors.New("auth: a hash matches two secrets")
	}
	return decoy, nil
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
