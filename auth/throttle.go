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

// Rate limits how often something can happen: Burst times at once, then once per Every. The
// zero Rate means a default.
type Rate struct {
	// Burst is how many can happen at once. It must be at least 1.
	Burst int
	// Every is the time until one more can happen. It must be greater than zero.
	Every time.Duration
}

var errRate = errors.New("auth: Rate: set both Burst and Every, greater than zero, and their product to 292 years at most")

func (r Rate) orDefault(fallback Rate) (Rate, error) {
	if r == (Rate{}) {
		return fallback, nil
	}
	if r.Burst <= 0 || r.Every <= 0 || int64(r.Burst) > math.MaxInt64/int64(r.Every) {
		return r, errRate
	}
	return r, nil
}

// times returns a rate of n times as many events. The product of its fields is valid.
func (r Rate) times(n int) Rate {
	return Rate{Burst: min(r.Burst, math.MaxInt/n) * n, Every: max(r.Every/time.Duration(n), 1)}
}

// ThrottleOptions configures a [Throttle]. You can leave every field zero.
type ThrottleOptions struct {
	// PerClientAndSource limits the failures of one id from one source. The zero Rate means
	// 20 at once and one every 6 seconds. All sources in one IPv6 /48 network count as one,
	// except those that the id has signed in from.
	PerClientAndSource Rate

	// PerSource limits the failures from one source, with any id. The zero Rate means 200 at
	// once and one per second. Many clients can share an address, so don't set it too low.
	// All sources in one IPv6 /48 network together can fail ten times as often. Ids that have
	// signed in from their source are exempt from that second limit.
	PerSource Rate

	// PerClient limits the failures of one id, from any source. The zero Rate means 1000 at
	// once and one per second. Sources that the id has signed in from are exempt, so a flood
	// from elsewhere doesn't lock the client out.
	PerClient Rate

	// Size is the maximum number of rows of each of the throttle's five tables. Zero means
	// 65,536, which take up to 22 MB each. To make room in the table of sources that ids have
	// signed in from, the throttle evicts from the id with the most rows. In the tables that
	// count failures by source, it evicts from the IPv4 address or IPv6 /48 network with the
	// most. So a single client or network can't make it forget others by filling a table.
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

// LimitError means that a sign-in wasn't checked, because too many have failed. The handler
// of [webhookcfg] responds with 429 and Retry-After.
type LimitError struct {
	limit // the handler logs it
	wait  time.Duration
}

// limit is a text that says which limit is used up.
type limit = redact.Fixed

const (
	limitPair     limit = "auth: too many failed sign-ins with this id from this source"
	limitPairSite limit = "auth: too many failed sign-ins with this id from the source's /48 network"
	limitSource   limit = "auth: too many failed sign-ins from this source"
	limitSite     limit = "auth: too many failed sign-ins from the source's /48 network"
	limitClient   limit = "auth: too many failed sign-ins with this id"
)

// Error returns a text with the limit that is used up and the wait, such as "auth: too many
// failed sign-ins from this source; retry after 6s". If several limits are used up, it names
// the one with the longest wait. The handler's log has the same limit and wait.
func (e *LimitError) Error() string {
	return fmt.Sprintf("%s; retry after %v", cmp.Or(string(e.limit), "auth: too many failed sign-ins"), e.wait)
}

// RetryAfter returns how long to wait before the next attempt. It's greater than zero.
func (e *LimitError) RetryAfter() time.Duration { return e.wait }

const errNoSource = redact.Fixed("auth: no source address in the context (see WithSource)")

// Throttle is a verifier that limits failed sign-ins. It's safe for concurrent use. Make one
// with [NewThrottle].
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

// pair is an id and a source. The id is hashed, so its length doesn't matter.
type pair struct {
	client uint64
	source netip.Prefix
}

// NewThrottle returns a verifier that limits how often sign-ins can fail, with token buckets:
// of one id from one source, of one source, of one IPv6 /48 network, and of one id. When a
// bucket is empty, Verify returns a [*LimitError] and doesn't call the given verifier. You
// can pass nil options.
//
// A source is an IPv4 address or an IPv6 /64 network. The throttle takes it from the context,
// so put [WithSource] around your handler. If you forget it, Verify returns an error that
// isn't a refusal, so that you notice.
//
// A sign-in takes its tokens before the check. It gets them back if it succeeds, or if the
// verifier is unavailable or out of time. It doesn't get them back if ctx was canceled, since
// the work may have been done. The buckets are the same whether an id exists or not. Sources
// that the id has signed in from skip the buckets of ids and of /48 networks.
//
// Usually you put a [Cache] around a Throttle, not inside it. Credentials that have signed in
// then stay accepted while others at the same address are limited, and concurrent requests
// with one credential take one token. After each check that succeeds, the credential skips
// the throttle for twice the [CacheOptions.TTL]. The flip side: for that long, the throttle
// can't keep anyone behind the same source from guessing that client's secret. When the limit
// is used up, wrong guesses get 429, but the right one still signs in.
//
// If people chose the secrets and strangers share their addresses, put the Throttle around
// the Cache. Guesses are then always limited, but when a limit is used up, the client is
// refused too.
//
// The throttle and the cache keep in memory which sources and credentials have signed in. So
// after a restart nobody is exempt from a limit until it has signed in again.
func NewThrottle(verifier webhookcfg.CredentialVerifier, options *ThrottleOptions) (*Throttle, error) {
	if verifier == nil {
		return nil, errNoVerifier
	}
	if options == nil {
		options = &ThrottleOptions{}
	}
	if options.Size < 0 {
		return nil, errors.New("auth: ThrottleOptions: Size must not be negative")
	}
	perPair, err1 := options.PerClientAndSource.orDefault(defaultPerClientAndSource)
	perSource, err2 := options.PerSource.orDefault(defaultPerSource)
	perClient, err3 := options.PerClient.orDefault(defaultPerClient)
	if err := cmp.Or(err1, err2, err3); err != nil {
		return nil, err
	}
	size := cmp.Or(options.Size, defaultThrottleSize)
	perSite, seed := perSource.times(sourcesPerSite), maphash.MakeSeed()
	// A caller chooses the ids that fail, so failures count for its network.
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
	addr, ok := SourceAddr(ctx)
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

// countsAsGuess reports whether a failed check costs its tokens. A wrong secret does, and so
// does a caller that disconnected, since the work may have been done. A verifier that is
// unavailable or out of time has revealed nothing, and its outage must not lock anyone out.
func countsAsGuess(ctx context.Context, err error) bool {
	return errors.Is(err, webhookcfg.ErrInvalidCredentials) || errors.Is(ctx.Err(), context.Canceled)
}

// Revision returns the revision of the wrapped verifier, or 0 if it has none.
func (t *Throttle) Revision() uint64 { return t.revision() }

// charge holds the tokens that one sign-in has taken.
type charge struct {
	pair     pair
	stranger bool // the id hasn't signed in from the source
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
	var longest LimitError
	consider := func(l limit, wait time.Duration) {
		if wait > longest.wait {
			longest = LimitError{l, wait}
		}
	}
	ofPair, ofSite := limitPair, limitSource
	if c.site() != p.source { // IPv6
		ofSite = limitSite
		if c.stranger {
			ofPair = limitPairSite
		}
	}
	consider(ofPair, t.pairs.Wait(c.perPair(), now))
	consider(limitSource, t.sources.Wait(p.source, now))
	if c.stranger {
		consider(ofSite, t.sites.Wait(c.site(), now))
		consider(limitClient, t.clients.Wait(p.client, now))
	}
	if longest.wait > 0 {
		return charge{}, &LimitError{longest.limit, longest.wait}
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
