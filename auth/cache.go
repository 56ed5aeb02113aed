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

// CacheOptions configures a [Cache] verifier. The zero value of every field is a safe
// default.
type CacheOptions struct {
	// TTL is the time for which a verified credential is remembered; zero means 5
	// minutes. It is not extended by use. A revoked credential is accepted for as long
	// unless a revision or [Cache.Drop] invalidates it.
	TTL time.Duration

	// Size bounds the number of credentials, counted once for each source. Zero means
	// 10,000, which take about 4 MB. To make room, the cache evicts from the id with the
	// most, and of its credentials the least recently used one.
	Size int

	// Revision replaces the method of the verifier, for a wrapper that hides it, such
	// as a [Func] that calls a [File]: set it to the method of the File. If nil, the
	// method of the verifier is used.
	Revision func() uint64

	// Key returns what a result depends on in addition to the id, the secret and the
	// source, such as the tenant that a request was routed to, from a context. If nil,
	// the result must depend on nothing else: it is shared by all contexts.
	Key func(ctx context.Context) string
}

const (
	defaultTTL       = 5 * time.Minute
	defaultCacheSize = 10_000
)

// checkTimeout bounds a check, which continues when its callers have given up. It is
// three times the default Timeout of the handler, so that in general a caller's own
// deadline passes first.
const checkTimeout = 30 * time.Second

// Cache is a verifier that remembers the successful checks of another one. It is safe
// for concurrent use. Make one with [NewCache].
type Cache struct {
	verifier   webhookcfg.CredentialVerifier
	revision   func() uint64
	contextKey func(context.Context) string
	ttl        time.Duration
	seed       [sha256.Size]byte
	clientSeed maphash.Seed

	mu       sync.Mutex // guards drops and verified
	drops    uint64
	verified *lru.Map[credentialKey, verification]
	checks   singleflight.Group[webhookcfg.Client]
}

// credentialKey identifies a credential from a source. Neither part can be computed
// without a seed of the cache.
type credentialKey struct {
	client uint64 // of the id
	digest digest // of everything
}

func (k credentialKey) owner() uint64 { return k.client }

// verification is the result of a successful check.
type verification struct {
	client  webhookcfg.Client
	version version
	until   time.Time
}

// version identifies the state of the credentials that a result is valid for. It is
// read before the check starts and after it has ended.
type version struct {
	revision, drops uint64
}

// NewCache returns a verifier that remembers the credentials that the given one has
// verified. It remembers only successes, under a keyed hash of id, secret and source;
// none of them is stored. A source is an IPv4 address or an IPv6 /64 network, as for
// [Throttle], so that a guess from elsewhere is subject to its limits. Requests without
// a source share one. Concurrent callers with the same credential and source share one check.
//
// If the verifier has a method Revision() uint64, such as [File.Revision], a change of
// its value invalidates everything remembered before. [Cache.Drop] does the same for
// other verifiers. Nil options mean the zero options.
func NewCache(verifier webhookcfg.CredentialVerifier, options *CacheOptions) (*Cache, error) {
	if verifier == nil {
		return nil, errNoVerifier
	}
	if options == nil {
		options = &CacheOptions{}
	}
	if options.TTL < 0 || options.Size < 0 {
		return nil, errors.New("auth: negative cache option")
	}
	c := &Cache{
		verifier:   verifier,
		revision:   options.Revision,
		contextKey: options.Key,
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

// maxChecks bounds the checks of one sign-in while the version changes.
const maxChecks = 3

const errChanging = redact.Fixed("auth: credentials changed during each of 3 checks")

// Verify implements [webhookcfg.CredentialVerifier]. A check that was under way when the
// credentials changed is made again. If ctx ends first, its error is returned and the
// check continues for other callers, for at most 30 seconds. If the wrapped verifier
// panics, Verify panics in every caller that waits for that check.
func (c *Cache) Verify(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
	credential := c.key(ctx, id, secret)
	for range maxChecks {
		found, now := c.lookup(credential)
		if found.version == now && time.Now().Before(found.until) {
			return found.client, nil
		}
		client, err := c.checks.Do(ctx, sharedCheck(credential.digest, now), checkTimeout, func(ctx context.Context) (webhookcfg.Client, error) {
			// Presenting a secret again that was right lately is no guess.
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

// Drop invalidates everything remembered, including the results of checks that are
// under way. Call it when a credential was revoked and the verifier has no revision.
func (c *Cache) Drop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drops++
	c.verified.Clear()
}

// Revision returns the revision of the wrapped verifier, 0 if it has none.
func (c *Cache) Revision() uint64 { return c.revision() }

// lookup returns the last success of a credential, if any, and the present version.
func (c *Cache) lookup(credential credentialKey) (verification, version) {
	revision := c.revision()
	c.mu.Lock()
	defer c.mu.Unlock()
	found, _ := c.verified.Get(credential)
	return found, version{revision, c.drops}
}

func (c *Cache) record(credential credentialKey, v verification, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err == nil:
		c.verified.Put(credential, v)
	case errors.Is(err, webhookcfg.ErrInvalidCredentials):
		c.verified.Remove(credential) // from now on it is a guess
	}
}

// sharedCheck returns the key of a check, which is equal for callers that may share it.
// It depends on what they present, never on what is stored: otherwise the shared wait
// would reveal that an unknown client has no hash.
func sharedCheck(credential digest, v version) string {
	key := binary.BigEndian.AppendUint64(credential[:], v.revision)
	return string(binary.BigEndian.AppendUint64(key, v.drops))
}

// key returns hashes that cannot be computed without the seeds, so that the time of a
// lookup reveals nothing about what is remembered. A plain prefix is sufficient as the
// key of the digest, since digests never leave the process.
func (c *Cache) key(ctx context.Context, id, secret string) credentialKey {
	source, _ := webhookcfg.SourceAddr(ctx)
	var buf [256]byte
	text := append(buf[:0], c.seed[:]...)
	parts := [...]string{id, secret, ""}
	if c.contextKey != nil {
		parts[2] = c.contextKey(ctx)
	}
	for _, part := range parts {
		text = binary.BigEndian.AppendUint64(text, uint64(len(part)))
		text = append(text, part...)
	}
	text, _ = network(source).AppendBinary(text) // never fails
	return credentialKey{
		client: maphash.Comparable(c.clientSeed, [...]string{id, parts[2]}),
		digest: sha256.Sum256(text),
	}
}

// revisionOf returns the optional method Revision of a verifier, or a constant 0.
func revisionOf(verifier webhookcfg.CredentialVerifier) func() uint64 {
	if v, ok := verifier.(interface{ Revision() uint64 }); ok {
		return v.Revision
	}
	return func() uint64 { return 0 }
}
