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
	defaultClientMax  = 10
	defaultClientRate = 60
)

const (
	// maxWait is how long a probe waits for a slot, and the wait of the
	// [LimitError] if none becomes free.
	maxWait = time.Second

	maxProbeHeaderBytes = 16 << 10
)

// ProberOptions are the options of [Policy.Prober]. The zero value is a safe default.
type ProberOptions struct {
	// HTTPProbe sends requests to the target. If nil, a probe connects and, for an
	// https URL, completes the TLS handshake; no HTTP is sent.
	HTTPProbe HTTPProbe

	// Timeout bounds a probe, including the lookup of the name, and each request of an
	// HTTPProbe. Zero means 5 seconds.
	Timeout time.Duration

	// MaxProbes bounds the number of concurrent probes. Another one waits for at
	// most a second and then fails with a [*LimitError]. Zero means 100.
	MaxProbes int

	// ClientMaxProbes bounds the number of concurrent probes of one client, which are
	// those that it waits for, and those that it started and no longer waits for.
	// Zero means 10.
	ClientMaxProbes int

	// ClientProbesPerMinute bounds the number of probes of one client in any minute,
	// however they are distributed: a client that makes all of them at once then waits
	// for a minute. Their times are held, in 8 bytes each, for 10,000 clients; for
	// another one, the client whose last probe is the oldest is forgotten, and may
	// start as many as one that made none. Zero means 60.
	ClientProbesPerMinute int
}

// Prober checks whether URLs are reachable. It is safe for concurrent use, need not
// be closed, and does not cache results.
type Prober struct {
	policy     *Policy
	httpProbe  HTTPProbe
	httpClient *http.Client
	timeout    time.Duration
	slots      chan struct{}
	limiter    *probeLimiter
	inFlight   singleflight.Group[struct{}]
}

// Prober returns a prober that enforces the policy. If opts is nil, the zero value is
// used. The error is that of [Policy.Validate], or reports a negative option.
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
		limiter:    newProbeLimiter(o.ClientMaxProbes, o.ClientProbesPerMinute),
	}, nil
}

func (o *ProberOptions) complete() error {
	if min(int64(o.Timeout), int64(o.MaxProbes), int64(o.ClientMaxProbes), int64(o.ClientProbesPerMinute)) < 0 {
		return errors.New("egress: negative number in ProberOptions")
	}
	o.Timeout = min(cmp.Or(o.Timeout, defaultTimeout), math.MaxInt64-maxWait) // no sum of the two overflows
	o.MaxProbes = cmp.Or(o.MaxProbes, defaultMax)
	o.ClientMaxProbes = cmp.Or(o.ClientMaxProbes, defaultClientMax)
	o.ClientProbesPerMinute = cmp.Or(o.ClientProbesPerMinute, defaultClientRate)
	return nil
}

// probeClient returns the client for HTTP probes. Its timeout bounds the requests of an
// HTTPProbe that does not use its context.
func (p *Policy) probeClient(timeout time.Duration) *http.Client {
	transport := &Transport{policy: p, pool: newPool(&http.Transport{
		DialContext:            dialer{policy: p, checkAll: true}.dial,
		DialTLSContext:         dialer{policy: p, checkAll: true, tls: true}.dial,
		DisableKeepAlives:      true,
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxProbeHeaderBytes,
		ReadBufferSize:         readBufferBytes,
	})}
	return &http.Client{Transport: transport, CheckRedirect: noRedirect, Timeout: timeout}
}

// Probe returns nil if target is reachable: its host has addresses, the policy allows
// all of them, one of them accepts a connection, the verified TLS handshake succeeds
// for https, and the [HTTPProbe], if any, returns nil. client is the identifier of
// the client to which the limits apply.
//
// Concurrent calls with the same target share one probe, but if there is an HTTPProbe,
// which may depend on the client, only those of the same client. The error is
//   - a [PolicyError] if [Policy.Check] refuses the target,
//   - a [*LimitError] if a limit of [ProberOptions] is exceeded,
//   - an [*UnreachableError] if the target is not reachable before the deadline of ctx,
//     which should not be disclosed to the client; see [Reason],
//   - an error that wraps [ErrUnavailable] if an address could not be checked, or if the
//     HTTPProbe returned it, and
//   - the error of ctx if it was cancelled, or had ended before the call.
//
// Probe returns as soon as ctx ends. The probe continues until its own timeout.
//
// If the probe panics, Probe panics in every waiting caller.
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
	// A probe counts against the client that started it until it ends, even if the
	// client disconnects: otherwise disconnecting early would defeat the limit.
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
		// Whichever deadline is first, the reason is the same.
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
	if err == nil {
		_ = conn.Close() // the probe has succeeded by now
	}
	return err
}

func (pr *Prober) probeHTTP(ctx context.Context, client string, target URL, to destination) error {
	err := pr.httpProbe(ctx, client, pr.httpClient, target)
	redacted := RedactError(err)
	if err == nil || errors.Is(err, ErrUnavailable) && !errors.Is(redacted, ErrUnavailable) {
		return err // of the HTTPProbe, which may wrap an error with another URL
	}
	return unreachable(ctx, to, ReasonResponse, redacted)
}

// LimitError is returned if a probe would exceed a limit of [ProberOptions].
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

// maxLimitedClients bounds the memory of a probeLimiter. It forgets clients rather than
// refuse them, so that many clients cannot block another one.
const maxLimitedClients = 10_000

// probeLimiter bounds the rate and the concurrency of each client's probes.
type probeLimiter struct {
	max int

	mu      sync.Mutex
	running map[string]int
	rate    *ratelimit.Window[string]
}

func newProbeLimiter(maxRunning, perMinute int) *probeLimiter {
	return &probeLimiter{
		max:     maxRunning,
		running: map[string]int{},
		rate:    ratelimit.NewWindow[string](perMinute, time.Minute, maxLimitedClients),
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
