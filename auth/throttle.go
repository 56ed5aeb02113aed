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
	"example.com/go-webhookcfg/webhookcfg"
)

// Rate is how often something may happen: Burst times at once, and then once Every
// so often. The zero Rate stands for a default.
type Rate struct {
	// Burst is how often at once; at least 1.
	Burst int
	// Every is the time after which it may happen once more; more than zero.
	Every time.Duration
}

var errRate = errors.New("auth: a rate needs a Burst and an Every that are more than zero and make less than 292 years")

func (r Rate) orDefault(fallback Rate) (Rate, error) {
	if r == (Rate{}) {
		return fallback, nil
	}
	if r.Burst <= 0 || r.Every <= 0 || int64(r.Burst) > math.MaxInt64/int64(r.Every) {
		return r, errRate
	}
	return r, nil
}

// ThrottleOptions are the choices for a [Throttled] verifier. The zero value is a
// safe default in every field.
type ThrottleOptions struct {
	// PerClientAndSource is how often one id may fail from one source; the zero Rate
	// means 20 times, and once every 6 seconds.
	PerClientAndSource Rate

	// PerSource is how often one source may fail, whatever the id; the zero Rate means
	// 200 times, and once a second. It is larger, as many clients may share an address.
	PerSource Rate

	// PerClient is how often one id may fail, whatever the source; the zero Rate means
	// 1000 times, and once a second. Sources that the id has signed in from are free of
	// it, so that a flood from everywhere else does not lock them out.
	PerClient Rate

	// Size bounds each of the four tables; zero means 65,536 rows, which take up to
	// 15 MB each. The row that was used the longest ago makes room.
	Size int
}

var (
	defaultPerClientAndSource = Rate{Burst: 20, Every: 6 * time.Second}
	defaultPerSource          = Rate{Burst: 200, Every: time.Second}
	defaultPerClient          = Rate{Burst: 1000, Every: time.Second}
)

const defaultThrottleSize = 1 << 16

// LimitError says that a sign-in was not tried, because too many have failed. The
// handler of [webhookcfg] answers 429 with Retry-After.
type LimitError struct {
	wait time.Duration
}

// Error names the wait, such as "auth: too many failed sign-ins; retry after 6s".
func (e *LimitError) Error() string {
	return fmt.Sprintf("auth: too many failed sign-ins; retry after %v", e.wait)
}

// RetryAfter returns how long to wait before trying again; more than zero.
func (e *LimitError) RetryAfter() time.Duration { return e.wait }

var errNoSource = errors.New("auth: the context has no source address; WithSource puts it there")

// Throttled is a verifier that slows down guessing. It is made by [Throttle] and
// safe for concurrent use.
type Throttled struct {
	verifier webhookcfg.CredentialVerifier
	revision func() uint64
	seed     maphash.Seed

	mu      sync.Mutex
	pairs   *ratelimit.Limiter[pair]
	sources *ratelimit.Limiter[netip.Prefix]
	clients *ratelimit.Limiter[uint64]
	known   *lru.Map[pair, struct{}]
}

// pair is an id, hashed so that its length does not matter, and a source.
type pair struct {
	client uint64
	source netip.Prefix
}

// Throttle returns a verifier that limits how often sign-ins may fail: of one id from
// one source, of one source, and of one id, by token buckets. Beyond, it returns a
// [*LimitError] without asking the given verifier. A source is an IPv4 address or an
// IPv6 /64 network, from the context: see [WithSource]. Without one, Throttle answers
// with an error that is not a refusal, so that a service that is wired wrong says so.
//
// A token is taken before the check and given back if the check succeeds or the
// verifier is unavailable, but not if the caller hangs up, since the work may be done
// by then. Whether an id exists makes no difference to the buckets, except that the
// bucket of one id is not asked at sources that it has signed in from.
//
// Put [Cache] around Throttle, not inside: then what has signed in goes on doing so
// while somebody else at the same address is slowed down, and concurrent requests
// with one credential take one token. Nil options are the zero options.
func Throttle(verifier webhookcfg.CredentialVerifier, options *ThrottleOptions) (*Throttled, error) {
	if verifier == nil {
		return nil, errNoVerifier
	}
	if options == nil {
		options = &ThrottleOptions{}
	}
	if options.Size < 0 {
		return nil, errors.New("auth: the size of a throttle is negative")
	}
	perPair, err1 := options.PerClientAndSource.orDefault(defaultPerClientAndSource)
	perSource, err2 := options.PerSource.orDefault(defaultPerSource)
	perClient, err3 := options.PerClient.orDefault(defaultPerClient)
	if err := cmp.Or(err1, err2, err3); err != nil {
		return nil, err
	}
	size := cmp.Or(options.Size, defaultThrottleSize)
	return &Throttled{
		verifier: verifier,
		revision: revisionOf(verifier),
		seed:     maphash.MakeSeed(),
		pairs:    newLimiter[pair](perPair, size),
		sources:  newLimiter[netip.Prefix](perSource, size),
		clients:  newLimiter[uint64](perClient, size),
		known:    lru.New[pair, struct{}](size),
	}, nil
}

func newLimiter[K comparable](rate Rate, size int) *ratelimit.Limiter[K] {
	return ratelimit.New[K](rate.Burst, rate.Every, size)
}

// Verify implements [webhookcfg.CredentialVerifier].
func (t *Throttled) Verify(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
	addr, ok := Source(ctx)
	if !ok {
		return webhookcfg.Client{}, errNoSource
	}
	p := pair{maphash.String(t.seed, id), network(addr)}
	paid, err := t.charge(p)
	if err != nil {
		return webhookcfg.Client{}, err
	}
	client, err := t.verifier.Verify(ctx, id, secret)
	unavailable := err != nil && !errors.Is(err, webhookcfg.ErrInvalidCredentials) && ctx.Err() == nil
	if err == nil || unavailable {
		t.refund(paid, err == nil)
	}
	return client, err
}

// Revision is that of the verifier behind the throttle, 0 if it has none.
func (t *Throttled) Revision() uint64 { return t.revision() }

// charge is the tokens that one sign-in has taken.
type charge struct {
	pair      pair
	perClient bool
}

// charge takes a token of each bucket, or of none if one has no token.
func (t *Throttled) charge(p pair) (charge, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	_, known := t.known.Get(p)
	wait := max(t.pairs.Wait(p, now), t.sources.Wait(p.source, now))
	if !known {
		wait = max(wait, t.clients.Wait(p.client, now))
	}
	if wait > 0 {
		return charge{}, &LimitError{wait}
	}
	t.pairs.Take(p, now)
	t.sources.Take(p.source, now)
	if !known {
		t.clients.Take(p.client, now)
	}
	return charge{pair: p, perClient: !known}, nil
}

// refund gives back what a sign-in has taken.
func (t *Throttled) refund(c charge, signedIn bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	t.pairs.GiveBack(c.pair, now)
	t.sources.GiveBack(c.pair.source, now)
	if c.perClient {
		t.clients.GiveBack(c.pair.client, now)
	}
	if signedIn {
		t.known.Put(c.pair, struct{}{})
	}
}

// network is the part of an address that its holder cannot choose freely.
func network(addr netip.Addr) netip.Prefix {
	bits := 32
	if addr.Is6() {
		bits = 64
	}
	prefix, _ := addr.Prefix(bits) // addr is valid and has that many bits
	return prefix
}
