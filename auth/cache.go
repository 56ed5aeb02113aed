package auth

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"net/netip"
	"sync"
	"time"

	"example.com/go-webhookcfg/internal/lru"
	"example.com/go-webhookcfg/internal/singleflight"
	"example.com/go-webhookcfg/webhookcfg"
)

// CacheOptions configures a [Cached] verifier. The zero value of every field is a safe
// default.
type CacheOptions struct {
	// TTL is the time for which a verified credential is remembered; zero means 5
	// minutes. It is not extended by use. A revoked credential is accepted for as long
	// unless a revision or [Cached.Drop] invalidates it.
	TTL time.Duration

	// Size bounds the number of credentials; zero means 10,000, which take about 3 MB.
	// To make room, the least recently used one is evicted.
	Size int
}

const (
	defaultTTL       = 5 * time.Minute
	defaultCacheSize = 10_000
)

// checkTimeout bounds a check, which continues when its callers have given up. It is
// three times the default Timeout of the handler, so that in general a caller's own
// deadline passes first.
const checkTimeout = 30 * time.Second

// Cached is a verifier that remembers the successful checks of another one. It is safe
// for concurrent use. Make one with [Cache].
type Cached struct {
	verifier webhookcfg.CredentialVerifier
	revision func() uint64
	ttl      time.Duration
	key      [sha256.Size]byte

	mu       sync.Mutex // guards drops and verified
	drops    uint64
	verified *lru.Map[digest, verification]
	checks   singleflight.Group[webhookcfg.Client]
}

// verification is the result of a successful check.
type verification struct {
	client  webhookcfg.Client
	version version
	until   time.Time
}

// version identifies the state of the credentials that a result is valid for. It is
// read before the check starts.
type version struct {
	revision, drops uint64
}

// Cache returns a verifier that remembers the credentials that the given one has
// verified. It remembers only successes, under a keyed hash of id and secret; neither
// is stored. Concurrent callers with the same credential and source share one check.
//
// If the verifier has a method Revision() uint64, such as [File.Revision], a change of
// its value invalidates everything remembered before. [Cached.Drop] does the same for
// other verifiers. Nil options mean the zero options.
func Cache(verifier webhookcfg.CredentialVerifier, options *CacheOptions) (*Cached, error) {
	if verifier == nil {
		return nil, errNoVerifier
	}
	if options == nil {
		options = &CacheOptions{}
	}
	if options.TTL < 0 || options.Size < 0 {
		return nil, errors.New("auth: negative cache option")
	}
	c := &Cached{
		verifier: verifier,
		revision: revisionOf(verifier),
		ttl:      cmp.Or(options.TTL, defaultTTL),
		verified: lru.New[digest, verification](cmp.Or(options.Size, defaultCacheSize)),
	}
	rand.Read(c.key[:]) // never fails
	return c, nil
}

var errNoVerifier = errors.New("auth: no verifier")

// Verify implements [webhookcfg.CredentialVerifier]. If ctx ends first, its error is
// returned and the check continues for other callers, for at most 30 seconds. If the
// wrapped verifier panics, Verify panics in every caller that waits for that check.
func (c *Cached) Verify(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
	credential := c.digest(id, secret)
	client, v, ok := c.lookup(credential)
	if ok {
		return client, nil
	}
	source, _ := Source(ctx)
	key := sharedCheck(credential, v, source)
	return c.checks.Do(ctx, key, checkTimeout, func(ctx context.Context) (webhookcfg.Client, error) {
		client, err := c.verifier.Verify(ctx, id, secret)
		if err == nil {
			c.remember(credential, verification{client, v, time.Now().Add(c.ttl)})
		}
		return client, err
	})
}

// Drop invalidates everything remembered, including the results of checks that are
// under way. Call it when a credential was revoked and the verifier has no revision.
func (c *Cached) Drop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drops++
	c.verified.Clear()
}

// Revision returns the revision of the wrapped verifier, 0 if it has none.
func (c *Cached) Revision() uint64 { return c.revision() }

// lookup also returns the version for the result of a new check.
func (c *Cached) lookup(credential digest) (webhookcfg.Client, version, bool) {
	revision := c.revision()
	c.mu.Lock()
	defer c.mu.Unlock()
	now := version{revision, c.drops}
	found, ok := c.verified.Get(credential)
	return found.client, now, ok && found.version == now && time.Now().Before(found.until)
}

func (c *Cached) remember(credential digest, v verification) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.verified.Put(credential, v)
}

// sharedCheck returns the key of a check, which is equal for callers that may share it.
// It depends on what they present, never on what is stored: otherwise the shared wait
// would reveal that an unknown client has no hash. It includes the source, since the
// result of a wrapped throttle depends on that.
func sharedCheck(credential digest, v version, source netip.Addr) string {
	key := binary.BigEndian.AppendUint64(credential[:], v.revision)
	key = binary.BigEndian.AppendUint64(key, v.drops)
	key, _ = source.AppendBinary(key) // never fails
	return string(key)
}

// digest returns a hash that cannot be computed without the key. A plain prefix is
// sufficient as the key, since digests never leave the process.
func (c *Cached) digest(id, secret string) digest {
	var buf [256]byte
	text := append(buf[:0], c.key[:]...)
	text = binary.BigEndian.AppendUint64(text, uint64(len(id)))
	text = append(text, id...)
	text = append(text, secret...)
	return sha256.Sum256(text)
}

// revisionOf returns the optional method Revision of a verifier, or a constant 0.
func revisionOf(verifier webhookcfg.CredentialVerifier) func() uint64 {
	if v, ok := verifier.(interface{ Revision() uint64 }); ok {
		return v.Revision
	}
	return func() uint64 { return 0 }
}
