package auth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"net/netip"
	"sync"
	"time"

	"example.com/go-webhookcfg/internal/lru"
	"example.com/go-webhookcfg/internal/ratelimit"
	"example.com/go-webhookcfg/internal/redact"
	"example.com/go-webhookcfg/webhookcfg"
)

// Rate is a limit on how often an event may occur: Burst times at once, then once per
// Every. The zero Rate means a default.
type Rate struct {
	// Burst is the number of events that may occur at once; at least 1.
	Burst int
	// Every is the time after which one more may occur; greater than zero.
	Every time.Duration
}

var errRate = errors.New("auth: rate without a positive Burst and Every, or with a product of more than 292 years")

func (r Rate) orDefault(fallback Rate) (Rate, error) {
	if r == (Rate{}) {
		return fallback, nil
	}
	if r.Burst <= 0 || r.Every <= 0 || int64(r.Burst) > math.MaxInt64/int64(r.Every) {
		return r, errRate
	}
	return r, nil
}

// times returns the rate of n times as many events. The product of its fields is valid.
func (r Rate) times(n int) Rate {
	return Rate{Burst: min(r.Burst, math.MaxInt/n) * n, Every: max(r.Every/time.Duration(n), 1)}
}

// ThrottleOptions configures a [Throttle] verifier. The zero value of every field is a
// safe default.
type ThrottleOptions struct {
	// PerClientAndSource limits the failures of one id from one source; the zero Rate
	// means 20 at once and one every 6 seconds. IPv6 sources in one /48 network that the
	// id has not signed in from count as one.
	PerClientAndSource Rate

	// PerSource limits the failures from one source, whatever the id; the zero Rate means
	// 200 at once and one per second. It is larger since many clients may share an address.
	// All sources in one IPv6 /48 network may together fail ten times as often, except
	// where the id has signed in from its source.
	PerSource Rate

	// PerClient limits the failures of one id, whatever the source; the zero Rate means
	// 1000 at once and one per second. Sources that the id has signed in from are exempt,
	// so that a flood from everywhere else does not lock them out.
	PerClient Rate

	// Size bounds each of the five tables. Zero means 65,536 rows, which take up to
	// 22 MB each. To make room, the table of sources that ids have signed in from evicts
	// from the id with the most rows, and the tables of failures from the IPv4 address or
	// the IPv6 /48 network with the most. So neither a client nor a network makes the
	// throttle forget others by filling a table.
	Size int
}

var (
	defaultPerClientAndSource = Rate{Burst: 20, Every: 6 * time.Second}
	defaultPerSource          = Rate{Burst: 200, Every: time.Second}
	defaultPerClient          = Rate{Burst: 1000, Every: time.Second}
)

const (
	defaultThrottleSize = 1 << 16
	sourcesPerSite      = 10
)

// LimitError reports that a sign-in was refused without a check, because too many have
// failed. The handler of [webhookcfg] responds with 429 and Retry-After.
type LimitError struct {
	wait time.Duration
}

// Error includes the wait, as in "auth: too many failed sign-ins; retry after 6s".
func (e *LimitError) Error() string {
	return fmt.Sprintf("auth: too many failed sign-ins; retry after %v", e.wait)
}

// RetryAfter returns the time to wait before the next attempt; greater than zero.
func (e *LimitError) RetryAfter() time.Duration { return e.wait }

const errNoSource = redact.Fixed("auth: no source address in the context (see WithSource)")

// Throttle is a verifier that limits failed sign-ins. It is safe for concurrent use.
// Make one with [NewThrottle].
type Throttle struct {
	verifier webhookcfg.CredentialVerifier
	revision func() uint64
	seed     maphash.Seed

	mu      sync.Mutex
	pairs   *ratelimit.Limiter[pair]
	sources *ratelimit.Limiter[netip.Prefix]
	sites   *ratelimit.Limiter[netip.Prefix]
	clients *ratelimit.Limiter[uint64]
	known   *lru.Map[pair, struct{}]
}

// pair is an id and a source. The id is hashed so that its length does not matter.
type pair struct {
	client uint64
	source netip.Prefix
}

// NewThrottle returns a verifier that limits the rate of failed sign-ins with token
// buckets: of one id from one source, of one source, of one IPv6 /48 network, and of one
// id. When a bucket is empty, Verify returns a [*LimitError] without calling the given
// verifier. A source is an IPv4 address or an IPv6 /64 network, taken from the context:
// see [WithSource]. Without one, Verify returns an error that is not a refusal, so that a
// service that is assembled incorrectly fails visibly.
//
// A token is taken before the check and given back if the check succeeds or the
// verifier is unavailable or out of time, but not if ctx was canceled, since the work
// may have been done. Whether an id exists makes no difference to the buckets, except
// that those for ids and for /48 networks are not consulted for sources that the id has
// signed in from.
//
// Put a [Cache] around a Throttle, not inside: then credentials that have signed in continue
// to be accepted while other clients at the same address are limited, and concurrent
// requests with one credential take one token. Nil options mean the zero options.
func NewThrottle(verifier webhookcfg.CredentialVerifier, options *ThrottleOptions) (*Throttle, error) {
	if verifier == nil {
		return nil, errNoVerifier
	}
	if options == nil {
		options = &ThrottleOptions{}
	}
	if options.Size < 0 {
		return nil, errors.New("auth: negative throttle size")
	}
	perPair, err1 := options.PerClientAndSource.orDefault(defaultPerClientAndSource)
	perSource, err2 := options.PerSource.orDefault(defaultPerSource)
	perClient, err3 := options.PerClient.orDefault(defaultPerClient)
	if err := cmp.Or(err1, err2, err3); err != nil {
		return nil, err
	}
	size := cmp.Or(options.Size, defaultThrottleSize)
	perSite, seed := perSource.times(sourcesPerSite), maphash.MakeSeed()
	// The ids that fail are the caller's choice, so failures count for the network.
	ofSource := func(source netip.Prefix) uint64 { return maphash.Comparable(seed, site(source.Addr())) }
	return &Throttle{
		verifier: verifier,
		revision: revisionOf(verifier),
		seed:     seed,
		pairs:    ratelimit.NewShared(perPair.Burst, perPair.Every, size, func(p pair) uint64 { return ofSource(p.source) }),
		sources:  ratelimit.NewShared(perSource.Burst, perSource.Every, size, ofSource),
		sites:    ratelimit.New[netip.Prefix](perSite.Burst, perSite.Every, size),
		clients:  ratelimit.New[uint64](perClient.Burst, perClient.Every, size),
		known:    lru.NewShared[pair, struct{}](size, func(p pair) uint64 { return p.client }),
	}, nil
}

// Verify implements [webhookcfg.CredentialVerifier].
func (t *Throttle) Verify(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
	addr, ok := webhookcfg.SourceAddr(ctx)
	if !ok {
		return webhookcfg.Client{}, errNoSource
	}
	if trustOf(ctx) == trustedCredential {
		return t.verifier.Verify(ctx, id, secret)
	}
	paid, err := t.charge(pair{maphash.String(t.seed, id), network(addr)})
	if err != nil {
		return webhookcfg.Client{}, err
	}
	if !paid.stranger {
		ctx = withTrust(ctx, trustedSource)
	}
	client, err := t.verifier.Verify(ctx, id, secret)
	if err == nil || !countsAsGuess(ctx, err) {
		t.refund(paid, err == nil)
	}
	return client, err
}

// countsAsGuess reports whether a failed check costs its tokens: a wrong secret, and one
// whose caller disconnected, since the work may have been done. A verifier that is
// unavailable or out of time has revealed nothing, and its outage must not become a
// lock-out.
func countsAsGuess(ctx context.Context, err error) bool {
	return errors.Is(err, webhookcfg.ErrInvalidCredentials) || errors.Is(ctx.Err(), context.Canceled)
}

// Revision returns the revision of the wrapped verifier, 0 if it has none.
func (t *Throttle) Revision() uint64 { return t.revision() }

// charge is the set of tokens that one sign-in has taken.
type charge struct {
	pair     pair
	stranger bool // the id has not signed in from the source
}

// perPair returns the key of the bucket for id and source.
func (c charge) perPair() pair {
	if c.stranger {
		return pair{c.pair.client, c.site()}
	}
	return c.pair
}

func (c charge) site() netip.Prefix { return site(c.pair.source.Addr()) }

// charge takes a token from each bucket, or from none if one is empty.
func (t *Throttle) charge(p pair) (charge, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	_, known := t.known.Get(p)
	c := charge{pair: p, stranger: !known}
	wait := max(t.pairs.Wait(c.perPair(), now), t.sources.Wait(p.source, now))
	if c.stranger {
		wait = max(wait, t.sites.Wait(c.site(), now), t.clients.Wait(p.client, now))
	}
	if wait > 0 {
		return charge{}, &LimitError{wait}
	}
	t.pairs.Take(c.perPair(), now)
	t.sources.Take(p.source, now)
	if c.stranger {
		t.sites.Take(c.site(), now)
		t.clients.Take(p.client, now)
	}
	return c, nil
}

// refund gives back the tokens of a sign-in.
func (t *Throttle) refund(c charge, signedIn bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	t.pairs.GiveBack(c.perPair(), now)
	t.sources.GiveBack(c.pair.source, now)
	if c.stranger {
		t.sites.GiveBack(c.site(), now)
		t.clients.GiveBack(c.pair.client, now)
	}
	if signedIn {
		t.known.Put(c.pair, struct{}{})
	}
}
