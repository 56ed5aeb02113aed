package egress

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"example.com/go-webhookcfg/internal/ratelimit"
	"example.com/go-webhookcfg/internal/singleflight"
)

// Defaults of [ProberOptions].
const (
	defaultTimeout    = 5 * time.Second
	defaultMax        = 100
	defaultClientRate = 60
)

const (
	// maxWait is how long a probe waits for a slot. If it gets none, the [LimitError] asks
	// for the same wait.
	maxWait = time.Second

	maxProbeHeaderBytes = 16 << 10
)

// ProberOptions are the options of [Policy.Prober]. The zero value is safe to use.
//
// Within Timeout, these limits of a probe are fixed:
//
//	lookup and connecting     10 s
//	TLS handshake             10 s, with at most 8 certificates in 16 KiB
//	header of a response      16 KiB
type ProberOptions struct {
	// HTTPProbe sends requests to the target, for example [Handshake]. If nil, a probe
	// connects and, for an https URL, completes the TLS handshake. It sends no HTTP.
	HTTPProbe HTTPProbe

	// Timeout bounds a probe, including the lookup of the name, and each request of an
	// HTTPProbe. Zero means 5 seconds.
	Timeout time.Duration

	// MaxProbes is how many probes can run at the same time. Any more wait for up to a second
	// and then fail with a [*LimitError]. Zero means 100.
	//
	// One client can have a tenth of them, rounded up. That counts the probes that the client
	// waits for, and those it started but no longer waits for.
	MaxProbes int

	// ClientProbesPerMinute is how many probes one client can start at once, and then in
	// every minute. Zero means 60: 60 at once, and then one a second.
	//
	// The prober remembers 10,000 clients. Beyond that, the least recently used client starts
	// over with a full quota.
	ClientProbesPerMinute int
}

// Prober checks whether URLs are reachable. It's safe for concurrent use, caches no results,
// and you don't need to close it.
type Prober struct {
	policy     *Policy
	httpProbe  HTTPProbe
	httpClient *http.Client
	timeout    time.Duration
	slots      chan struct{}
	limiter    *probeLimiter
	inFlight   singleflight.Group[struct{}]
}

// Prober returns a prober that enforces the policy. Nil opts means the zero value. The error
// reports an invalid policy, as [Policy.Validate] does, or a negative option.
func (p *Policy) Prober(opts *ProberOptions) (*Prober, error) {
	p = p.Clone()
	if err := p.Validate(); err != nil {
		return nil, err
	}
	var o ProberOptions
	if opts != nil {
		o = *opts
	}
	if err := o.complete(); err != nil {
		return nil, err
	}
	return &Prober{
		policy:     p,
		httpProbe:  o.HTTPProbe,
		httpClient: p.probeClient(o.Timeout),
		timeout:    o.Timeout,
		slots:      make(chan struct{}, o.MaxProbes),
		limiter:    newProbeLimiter((o.MaxProbes-1)/10+1, o.ClientProbesPerMinute),
	}, nil
}

func (o *ProberOptions) complete() error {
	if min(int64(o.Timeout), int64(o.MaxProbes), int64(o.ClientProbesPerMinute)) < 0 {
		return errors.New("egress: negative number in ProberOptions")
	}
	o.Timeout = min(cmp.Or(o.Timeout, defaultTimeout), math.MaxInt64-maxWait) // no sum of the two overflows
	o.MaxProbes = cmp.Or(o.MaxProbes, defaultMax)
	o.ClientProbesPerMinute = cmp.Or(o.ClientProbesPerMinute, defaultClientRate)
	return nil
}

// probeClient returns the client for HTTP probes. Its timeout catches an HTTPProbe that
// doesn't use its context.
func (p *Policy) probeClient(timeout time.Duration) *http.Client {
	transport := &Transport{policy: p, pool: newPool(0, func() *http.Transport {
		return &http.Transport{
			DialContext:            dialer{policy: p, checkAll: true}.dial,
			DialTLSContext:         dialer{policy: p, checkAll: true, tls: true}.dial,
			DisableKeepAlives:      true,
			DisableCompression:     true,
			MaxResponseHeaderBytes: maxProbeHeaderBytes,
			ReadBufferSize:         readBufferBytes,
		}
	})}
	return &http.Client{Transport: transport, CheckRedirect: noRedirect, Timeout: timeout}
}

// Probe returns nil if target is reachable. That means that its host has addresses, the
// policy allows all of them, one of them accepts a connection, the verified TLS handshake
// succeeds for https, and so does the [HTTPProbe] if there is one. Probes count towards the
// limits of client, an identifier. The error is
//   - a [PolicyError] if [Policy.Check] refuses the target,
//   - a [*LimitError] if a limit of [ProberOptions] is exceeded,
//   - an [*UnreachableError] if the target can't be reached before the probe's timeout and the
//     deadline of ctx. Don't show it to the client; see [Reason],
//   - an error that wraps [ErrUnavailable] if an address couldn't be checked, or if the
//     HTTPProbe returned it, and
//   - the error of ctx if you cancelled it, or if it had ended before the call.
//
// Concurrent calls with the same target share one probe. If there is an HTTPProbe, only calls
// of the same client do, since the result may depend on the client.
//
// Probe returns as soon as ctx ends. The probe itself runs on until its own timeout. If it
// panics, Probe panics in every waiting caller.
func (pr *Prober) Probe(ctx context.Context, client string, target URL) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	to, err := pr.policy.parse(ctx, target.Reveal())
	if err != nil {
		return err
	}
	if err := pr.limiter.acquire(client, time.Now()); err != nil {
		return err
	}
	// A probe counts against the client that started it until it ends. Otherwise a client
	// could defeat the limit by disconnecting early.
	var charged atomic.Bool
	defer func() {
		if charged.CompareAndSwap(false, true) {
			pr.limiter.release(client)
		}
	}()
	key := target.Reveal()
	if pr.httpProbe != nil {
		key += "\n" + client // unambiguous: a checked target contains no line break
	}
	_, err = pr.inFlight.Do(ctx, key, maxWait+pr.timeout, func(ctx context.Context) (struct{}, error) {
		if charged.CompareAndSwap(false, true) {
			defer pr.limiter.release(client)
		}
		return struct{}{}, pr.run(ctx, client, target, to)
	})
	if errors.Is(err, context.DeadlineExceeded) {
		// The reason is the same, no matter which deadline is first.
		return unreachable(ctx, to, ReasonTimeout, err)
	}
	return err
}

// run waits for one of the MaxProbes slots and probes the target.
func (pr *Prober) run(ctx context.Context, client string, target URL, to destination) error {
	select {
	case pr.slots <- struct{}{}:
		defer func() { <-pr.slots }()
	case <-time.After(maxWait):
		return &LimitError{wait: maxWait}
	}
	ctx, cancel := context.WithTimeout(ctx, pr.timeout)
	defer cancel()
	if pr.httpProbe != nil {
		return pr.probeHTTP(ctx, client, target, to)
	}
	return pr.connect(ctx, to)
}

func (pr *Prober) connect(ctx context.Context, to destination) error {
	conn, err := dialer{policy: pr.policy, checkAll: true}.connect(ctx, to)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if secured, ok := conn.(*secureConn); ok {
		if err := secured.awaitAlert(); err != nil {
			return unreachable(ctx, to, ReasonTLS, err)
		}
	}
	return nil
}

func (pr *Prober) probeHTTP(ctx context.Context, client string, target URL, to destination) error {
	err := pr.httpProbe(ctx, client, pr.httpClient, target)
	redacted := RedactError(err)
	if err == nil || errors.Is(err, ErrUnavailable) && !errors.Is(redacted, ErrUnavailable) {
		return err // the HTTPProbe's own, which may wrap an error with another URL
	}
	return unreachable(ctx, to, ReasonResponse, redacted)
}

// LimitError means that a probe would exceed a limit of [ProberOptions].
type LimitError struct {
	wait time.Duration
}

// Error returns a text with the time to wait, such as "egress: too many probes; retry
// after 2s".
func (e *LimitError) Error() string {
	return fmt.Sprintf("egress: too many probes; retry after %v", e.wait)
}

// RetryAfter returns the time to wait before the next attempt. It is positive.
func (e *LimitError) RetryAfter() time.Duration { return e.wait }

// maxLimitedClients bounds the memory of a probeLimiter. When it's full, it forgets a client
// rather than refuse one, so many clients can't block another one.
const maxLimitedClients = 10_000

// probeLimiter bounds the rate and the concurrency of each client's probes.
type probeLimiter struct {
	max int

	mu      sync.Mutex
	running map[string]int
	rate    *ratelimit.Limiter[string]
}

func newProbeLimiter(maxRunning, perMinute int) *probeLimiter {
	return &probeLimiter{
		max:     maxRunning,
		running: map[string]int{},
		rate:    ratelimit.New[string](perMinute, max(time.Minute/time.Duration(perMinute), 1), maxLimitedClients),
	}
}

// acquire charges the client for one probe, until release, or returns a [*LimitError].
func (l *probeLimiter) acquire(client string, now time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.running[client] >= l.max {
		return &LimitError{wait: maxWait}
	}
	if wait := l.rate.Wait(client, now); wait > 0 {
		return &LimitError{wait: wait}
	}
	l.rate.Take(client, now)
	l.running[client]++
	return nil
}

func (l *probeLimiter) release(client string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running[client]--
	if l.running[client] == 0 {
		delete(l.running, client)
	}
}
