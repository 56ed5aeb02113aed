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

// CacheOptions are the choices for a [Cached] verifier. The zero value is a safe
// default in every field.
type CacheOptions struct {
	// TTL is how long a credential is remembered after it was verified; zero means 5
	// minutes. Where neither a revision nor [Cached.Drop] tells of it, a revoked
	// credential signs in for as long.
	TTL time.Duration

	// Size is how many credentials are remembered; zero means 10,000, which take about
	// 3 MB. The one that was used the longest ago makes room.
	Size int
}

const (
	defaultTTL       = 5 * time.Minute
	defaultCacheSize = 10_000
)

// checkTimeout bounds a check, since it goes on when its callers have left. It is
// longer than requests usually last, so that their deadlines decide what callers get.
const checkTimeout = 30 * time.Second

// Cached is a verifier that remembers what another one has verified. It is made by
// [Cache] and safe for concurrent use.
type Cached struct {
	verifier webhookcfg.CredentialVerifier
	revision func() uint64
	ttl      time.Duration
	key      [sha256.Size]byte

	mu       sync.Mutex
	drops    uint64
	verified *lru.Map[digest, verification]
	checks   singleflight.Group[webhookcfg.Client]
}

// verification is what is remembered of a credential.
type verification struct {
	client  webhookcfg.Client
	version version
	until   time.Time
}

// version is what the answers of the verifier hold for. It is taken before the
// question is asked.
type version struct {
	revision, drops uint64
}

// Cache returns a verifier that answers from memory for credentials that the given
// one has verified. It remembers successes alone, under a keyed hash of id and secret:
// neither is kept. Whoever presents one credential at the same time shares one check.
//
// If the verifier has a method Revision() uint64, such as [File.Revision], all that was
// remembered before its value changed is void at once. [Cached.Drop] does the same for
// other verifiers. Nil options are the zero options.
func Cache(verifier webhookcfg.CredentialVerifier, options *CacheOptions) (*Cached, error) {
	if verifier == nil {
		return nil, errNoVerifier
	}
	if options == nil {
		options = &CacheOptions{}
	}
	if options.TTL < 0 || options.Size < 0 {
		return nil, errors.New("auth: a cache option is negative")
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

// Verify implements [webhookcfg.CredentialVerifier]. If the verifier behind panics,
// so does everybody who waits for it. When ctx ends, the caller gets its error; the check
// goes on for those who share it, with a deadline of its own.
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

// Drop forgets everything, what is being verified now too. A host calls it when a
// credential was revoked in a place that has no revision.
func (c *Cached) Drop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drops++
	c.verified.Clear()
}

// Revision is that of the verifier behind the cache, 0 if it has none.
func (c *Cached) Revision() uint64 { return c.revision() }

// lookup also returns the version that a new check must be remembered with.
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

// sharedCheck returns the key of a check, equal for callers that may share it. It is made of
// what they present, never of what is stored: else the shared wait would tell that an
// unknown client has no hash of its own. The source is part of it, since a throttle
// behind the cache answers by source.
func sharedCheck(credential digest, v version, source netip.Addr) string {
	key := binary.BigEndian.AppendUint64(credential[:], v.revision)
	key = binary.BigEndian.AppendUint64(key, v.drops)
	key, _ = source.AppendBinary(key) // never fails
	return string(key)
}

// digest is a hash that nobody without the key can look for. A plain prefix as the
// key does, since digests never leave the process.
func (c *Cached) digest(id, secret string) digest {
	var buf [256]byte
	text := append(buf[:0], c.key[:]...)
	text = binary.BigEndian.AppendUint64(text, uint64(len(id)))
	text = append(text, id...)
	text = append(text, secret...)
	return sha256.Sum256(text)
}

// revisionOf returns the revision of verifiers that have one.
func revisionOf(verifier webhookcfg.CredentialVerifier) func() uint64 {
	if v, ok := verifier.(interface{ Revision() uint64 }); ok {
		return v.Revision
	}
	return func() uint64 { return 0 }
}
