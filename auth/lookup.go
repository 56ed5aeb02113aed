package auth

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

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
	// the secret can sign in until Revision says otherwise.
	Find func(ctx context.Context, id string) ([]HashedSecret, error)

	// Hash returns a new hash of a secret. Use the same parameters as for your stored hashes,
	// such as their cost or memory. NewLookup calls it once, to make a decoy. Where a client
	// has fewer than MaxHashes secrets, or doesn't exist, secrets are compared with the decoy
	// instead, so every refusal takes MaxHashes comparisons. If your stored hashes have other
	// parameters, comparing them takes a different time, and that reveals which clients
	// exist.
	Hash func(secret []byte) ([]byte, error)

	// Compare returns nil if the hash belongs to the secret, otherwise an error that contains
	// neither. You can use bcrypt.CompareHashAndPassword, but first refuse secrets of more
	// than 72 bytes, since it ignores what follows these.
	Compare func(hash, secret []byte) error

	// MaxHashes is how many secrets a client can have, and how many comparisons every refusal
	// takes. It's eight at most. Zero means 2, for an old secret and a new one.
	MaxHashes int

	// SlowHashes is how many checks compare at the same time. Zero means half of GOMAXPROCS,
	// and at least one. Up to 16 times as many wait. Others fail with [ErrBusy].
	SlowHashes int

	// Revision returns a number that changes whenever you revoke a secret, disable a client or
	// give its configuration to another one. For example, keep the number in a row that you
	// increment in the same transaction. Every process then reads it once per Poll, and a
	// [Cache] around the Lookup forgets everything when the number has changed. So a revoked
	// secret is refused everywhere within Poll and the time to read the number.
	//
	// Read the number from the database that Find reads, not from a replica that is behind it
	// or ahead of it. While Revision fails, a cache goes on as before, and
	// [Lookup.Healthy] returns the error. Its context ends after Poll.
	//
	// If it's nil, the Lookup doesn't poll. A cache then accepts a revoked secret for up to
	// [CacheOptions.TTL] more.
	Revision func(ctx context.Context) (uint64, error)

	// Poll is the time between two calls of Revision. Zero means 2 seconds.
	Poll time.Duration
}

const (
	defaultMaxHashes = 2
	defaultPoll      = 2 * time.Second
)

// Lookup is a verifier for clients that you store yourself, for example in a database. You
// choose the hash, such as bcrypt or argon2id. It's safe for concurrent use if the functions
// in its options are. Make one with [NewLookup].
type Lookup struct {
	find    func(ctx context.Context, id string) ([]HashedSecret, error)
	compare func(hash, secret []byte) error
	hashes  int
	decoy   []byte
	slots   *slots

	revision polledRevision
}

// NewLookup returns a verifier for clients that you store. It tries out [LookupOptions.Hash] and
// [LookupOptions.Compare]. It fails if a function is missing, if Hash fails, or if Compare
// refuses the new hash or accepts another secret for it.
//
// If you set [LookupOptions.Revision], call [Lookup.Close] when you're done: it stops the
// polling.
func NewLookup(options LookupOptions) (*Lookup, error) {
	switch {
	case options.Find == nil || options.Hash == nil || options.Compare == nil:
		return nil, errors.New("auth: LookupOptions: set Find, Hash and Compare")
	case options.MaxHashes < 0 || options.MaxHashes > maxSecrets || options.SlowHashes < 0:
		return nil, errors.New("auth: LookupOptions: MaxHashes must be 0 to 8, and SlowHashes must not be negative")
	case options.Poll < 0 || options.Poll > 0 && options.Revision == nil:
		return nil, errors.New("auth: LookupOptions: Poll must not be negative, and it needs Revision")
	}
	decoy, err := options.newDecoy()
	if err != nil {
		return nil, err
	}
	l := &Lookup{
		find:    options.Find,
		compare: options.Compare,
		hashes:  cmp.Or(options.MaxHashes, defaultMaxHashes),
		decoy:   decoy,
		slots:   newSlots(options.SlowHashes),
	}
	if options.Revision != nil {
		l.revision.start(cmp.Or(options.Poll, defaultPoll), options.Revision)
	}
	return l, nil
}

// Revision returns the number that [LookupOptions.Revision] returned last. [Cache] uses it.
// It's 0 until the first poll, and without such a function.
func (l *Lookup) Revision() uint64 { return l.revision.value.Load() }

// Healthy returns nil if the last call of [LookupOptions.Revision] succeeded. Otherwise it
// returns the error. It does no I/O, so it says nothing about [LookupOptions.Find]: without a
// Revision, it returns nil even while Find fails.
func (l *Lookup) Healthy(context.Context) error { return l.revision.healthy() }

// Close stops the polling and waits for it to end. The Lookup still verifies, but a cache no
// longer hears of revoked secrets. You can call Close more than once. It always returns nil.
func (l *Lookup) Close() error {
	l.revision.close()
	return nil
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
