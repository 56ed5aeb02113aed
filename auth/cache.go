package auth

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash/maphash"
	"sync"
	"time"

	"example.com/go-webhookcfg/internal/lru"
	"example.com/go-webhookcfg/internal/redact"
	"example.com/go-webhookcfg/internal/singleflight"
	"example.com/go-webhookcfg/webhookcfg"
)

// CacheOptions configures a [Cache]. You can leave every field zero.
type CacheOptions struct {
	// TTL is how long a verified credential is remembered. Zero means 5 minutes. Using the
	// credential doesn't extend that. Until then a revoked credential is still accepted,
	// unless the verifier's revision changes.
	TTL time.Duration

	// Size is the maximum number of remembered credentials. Zero means 10,000, which take
	// about 4 MB. A credential counts once for each source. When the cache is full, it evicts
	// the least recently used credential of the id that has the most.
	Size int

	// Revision replaces the verifier's own Revision method. Set it if a wrapper hides that
	// method: with a [Func] that calls a [File], set it to the File's Revision. If your
	// verifier has none, return a number that you raise when you revoke a credential. If nil,
	// the verifier's method is used.
	Revision func() uint64
}

const (
	defaultTTL       = 5 * time.Minute
	defaultCacheSize = 10_000
)

// checkTimeout bounds a check, since it goes on after its callers have given up. It's three
// times the handler's default Timeout, so a caller's own deadline usually passes first.
const checkTimeout = 30 * time.Second

// Cache is a verifier that remembers the successful checks of another one. It's safe for
// concurrent use. Make one with [NewCache].
type Cache struct {
	verifier   webhookcfg.CredentialVerifier
	revision   func() uint64
	ttl        time.Duration
	seed       [sha256.Size]byte
	clientSeed maphash.Seed

	mu       sync.Mutex // guards verified
	verified *lru.Map[credentialKey, verification]
	checks   singleflight.Group[webhookcfg.Client]
}

// credentialKey identifies a credential from a source. Nobody can compute either part without
// the seeds of the cache.
type credentialKey struct {
	client uint64 // hash of the id
	digest digest // hash of everything
}

func (k credentialKey) owner() uint64 { return k.client }

// verification is the result of a successful check.
type verification struct {
	client webhookcfg.Client
	// revision is the one that the result is valid for. Verify reads it before a check and
	// again after it.
	revision uint64
	until    time.Time
}

// NewCache returns a verifier that remembers successful checks of the given one. It keeps a
// keyed hash of id, secret and source, never the values themselves. As with [Throttle], a
// source is an IPv4 address or an IPv6 /64 network, so a guess from elsewhere can't profit
// from the cache. Requests without a source share one. Concurrent callers with the same
// credential and source share one check. So the result may depend on nothing else: if it
// depends on a tenant in the context, make a cache for each tenant.
//
// If the verifier has a method Revision() uint64, as [File] and [Lookup] do, the cache forgets
// everything when its value changes. With any other verifier, set [CacheOptions.Revision]. You
// can pass nil options.
func NewCache(verifier webhookcfg.CredentialVerifier, options *CacheOptions) (*Cache, error) {
	if verifier == nil {
		return nil, errNoVerifier
	}
	if options == nil {
		options = &CacheOptions{}
	}
	if options.TTL < 0 || options.Size < 0 {
		return nil, errors.New("auth: CacheOptions: TTL and Size must not be negative")
	}
	c := &Cache{
		verifier:   verifier,
		revision:   options.Revision,
		ttl:        cmp.Or(options.TTL, defaultTTL),
		clientSeed: maphash.MakeSeed(),
		verified:   lru.NewShared[credentialKey, verification](cmp.Or(options.Size, defaultCacheSize), credentialKey.owner),
	}
	if c.revision == nil {
		c.revision = revisionOf(verifier)
	}
	rand.Read(c.seed[:]) // never fails
	return c, nil
}

var errNoVerifier = errors.New("auth: no verifier")

// maxChecks bounds the checks of one sign-in while the revision changes.
const maxChecks = 3

const errChanging = redact.Fixed("auth: credentials changed during each of 3 checks")

// Verify implements [webhookcfg.CredentialVerifier]. If the credentials change during a
// check, it checks again. If ctx ends first, Verify returns the context's error, and the
// check goes on for other callers, for at most 30 seconds. If the wrapped verifier panics,
// Verify panics in every caller that waits for that check.
func (c *Cache) Verify(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
	credential := c.key(ctx, id, secret)
	for range maxChecks {
		found, now := c.lookup(credential)
		if found.revision == now && time.Now().Before(found.until) {
			return found.client, nil
		}
		client, err := c.checks.Do(ctx, sharedCheck(credential.digest, now), checkTimeout, func(ctx context.Context) (webhookcfg.Client, error) {
			// The secret was right lately, so presenting it again isn't a guess.
			if time.Now().Before(found.until.Add(c.ttl)) {
				ctx = withTrust(ctx, trustedCredential)
			}
			client, err := c.verifier.Verify(ctx, id, secret)
			c.record(credential, verification{client, now, time.Now().Add(c.ttl)}, err)
			return client, err
		})
		if err != nil {
			return webhookcfg.Client{}, err
		}
		if _, after := c.lookup(credential); after == now {
			return client, nil
		}
	}
	return webhookcfg.Client{}, errChanging
}

// Revision returns the revision of the wrapped verifier, or 0 if it has none.
func (c *Cache) Revision() uint64 { return c.revision() }

// lookup returns the last success of a credential, if any, and the current revision.
func (c *Cache) lookup(credential credentialKey) (v verification, revision uint64) {
	revision = c.revision()
	c.mu.Lock()
	defer c.mu.Unlock()
	found, _ := c.verified.Get(credential)
	return found, revision
}

func (c *Cache) record(credential credentialKey, v verification, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err == nil:
		c.verified.Put(credential, v)
	case errors.Is(err, webhookcfg.ErrInvalidCredentials):
		c.verified.Remove(credential) // from now on it's a guess
	}
}

// sharedCheck returns the key of a check. Callers with equal keys share it. The key depends
// on the credentials that they present, never on stored ones: otherwise the shared wait would
// reveal that an unknown client has no hash.
func sharedCheck(credential digest, revision uint64) string {
	return string(binary.BigEndian.AppendUint64(credential[:], revision))
}

// key returns hashes that nobody can compute without the seeds, so the time of a lookup
// doesn't reveal anything remembered. A plain prefix is enough to key the digest, since
// digests never leave the process.
func (c *Cache) key(ctx context.Context, id, secret string) credentialKey {
	source, _ := SourceAddr(ctx)
	var buf [256]byte
	text := append(buf[:0], c.seed[:]...)
	for _, part := range [...]string{id, secret} {
		text = binary.BigEndian.AppendUint64(text, uint64(len(part)))
		text = append(text, part...)
	}
	text, _ = network(source).AppendBinary(text) // never fails
	return credentialKey{
		client: maphash.String(c.clientSeed, id),
		digest: sha256.Sum256(text),
	}
}
