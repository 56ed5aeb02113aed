package egress

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
	// maxWait is how long a probe waits for others to end, and how long a
	// caller is asked to wait for the same.
	maxWait = time.Second

	maxProbeHeaderBytes = 16 << 10
)

// ProberOptions sets up a [Prober]. The zero value is the safe default.
type ProberOptions struct {
	// HTTPProbe is what follows on a connection; nil: nothing. Without it, a probe
	// of an https URL ends with the TLS handshake, and sends no byte of HTTP.
	HTTPProbe HTTPProbe

	// Timeout bounds a probe from the look-up to its end; 0: 5 seconds.
	Timeout time.Duration

	// MaxProbes bounds how many probes run at the same time; 0: 100. One more
	// waits for up to a second, and then gives a [*LimitError].
	MaxProbes int

	// ClientMaxProbes bounds how many probes one client may wait for, or have
	// started, at the same time; 0: 10.
	ClientMaxProbes int

	// ClientProbesPerMinute bounds how many probes one client may ask for in a
	// minute; 0: 60. A client that paused can ask for that many at once.
	ClientProbesPerMinute int
}

// Prober finds out whether a URL can be reached. It is safe for concurrent use,
// holds nothing that must be closed, and remembers no result.
type Prober struct {
	policy     *Policy
	httpProbe  HTTPProbe
	httpClient *http.Client
	timeout    time.Duration
	slots      chan struct{}
	limiter    *probeLimiter
	inFlight   singleflight.Group[struct{}]
}

// Prober returns a prober that keeps to the policy; nil options are the default.
// It returns an error for a negative number, or that of [Policy.Validate].
func (p *Policy) Prober(opts *ProberOptions) (*Prober, error) {
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
		httpClient: p.probeClient(),
		timeout:    o.Timeout,
		slots:      make(chan struct{}, o.MaxProbes),
		limiter:    newProbeLimiter(o.ClientMaxProbes, o.ClientProbesPerMinute),
	}, nil
}

func (o *ProberOptions) complete() error {
	if min(int64(o.Timeout), int64(o.MaxProbes), int64(o.ClientMaxProbes), int64(o.ClientProbesPerMinute)) < 0 {
		return errors.New("egress: negative number in ProberOptions")
	}
	o.Timeout = cmp.Or(o.Timeout, defaultTimeout)
	o.MaxProbes = cmp.Or(o.MaxProbes, defaultMax)
	o.ClientMaxProbes = cmp.Or(o.ClientMaxProbes, defaultClientMax)
	o.ClientProbesPerMinute = cmp.Or(o.ClientProbesPerMinute, defaultClientRate)
	return nil
}

// probeClient returns the client of exchanges.
func (p *Policy) probeClient() *http.Client {
	d := dialer{policy: p, checkAll: true}
	transport := &Transport{policy: p, base: &http.Transport{
		DialContext:            d.dial,
		DialTLSContext:         d.dialTLS,
		DisableKeepAlives:      true,
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxProbeHeaderBytes,
	}}
	return &http.Client{Transport: transport, CheckRedirect: noRedirect}
}

// Probe returns nil if target can be reached: its host has addresses, the policy
// allows every one of them, one accepts a connection, for https a verified TLS
// handshake succeeds, and the [HTTPProbe], if there is one, is satisfied.
//
// Concurrent probes of one target are one probe; with an HTTPProbe, which may depend
// on the client, only those of the same client. client is the identifier of the
// client that asks, and is charged for the probe. The error is
//   - a [PolicyError] if [Policy.Check] refuses the target,
//   - a [*LimitError] if the caller has to wait,
//   - an [*UnreachableError] if the target could not be reached; to be told to
//     nobody but the host, see [Reason], and
//   - the error of ctx as soon as ctx ends. The probe goes on, up to its own end.
//
// A panic in the probe is raised again in every caller that waits for it.
func (pr *Prober) Probe(ctx context.Context, client string, target URL) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	to, err := pr.policy.parse(target.Reveal())
	if err != nil {
		return err
	}
	if err := pr.limiter.acquire(client, time.Now()); err != nil {
		return err
	}
	// The probe counts against the client that started it until it ends: a client
	// that disconnects early has not made room for another one.
	var charged atomic.Bool
	defer func() {
		if charged.CompareAndSwap(false, true) {
			pr.limiter.release(client)
		}
	}()
	key := target.Reveal()
	if pr.httpProbe != nil {
		key += "\n" + client // no target that was checked holds a line break
	}
	_, err = pr.inFlight.Do(ctx, key, maxWait+pr.timeout, func(ctx context.Context) (struct{}, error) {
		if charged.CompareAndSwap(false, true) {
			defer pr.limiter.release(client)
		}
		return struct{}{}, pr.run(ctx, client, target, to)
	})
	return err
}

// run makes one probe as soon as there is a place for it.
func (pr *Prober) run(ctx context.Context, client string, target URL, to endpoint) error {
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

func (pr *Prober) connect(ctx context.Context, to endpoint) error {
	d := dialer{policy: pr.policy, checkAll: true}
	connect := d.connect
	if to.tls {
		connect = d.connectTLS
	}
	conn, err := connect(ctx, to)
	if err == nil {
		_ = conn.Close() // what the receiver does next does not matter
	}
	return err
}

func (pr *Prober) probeHTTP(ctx context.Context, client string, target URL, to endpoint) error {
	err := pr.httpProbe(ctx, client, pr.httpClient, target)
	if err == nil {
		return nil
	}
	return unreachable(ctx, to, ReasonResponse, RedactError(err))
}

// LimitError says that a probe was not made because too many are under way, or
// too many were asked for.
type LimitError struct {
	wait time.Duration
}

// Error names the wait, such as "egress: too many probes; retry after 2s".
func (e *LimitError) Error() string {
	return fmt.Sprintf("egress: too many probes; retry after %v", e.wait)
}

// RetryAfter returns how long to wait before asking again; more than zero.
func (e *LimitError) RetryAfter() time.Duration { return e.wait }

// maxLimitedClients bounds the memory that a quota takes. A client beyond it makes
// another one forgotten, as if that had not asked for a minute.
const maxLimitedClients = 10_000

// quota bounds what each client may ask for.
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

// enter charges the client for one probe, to be ended by leave, or returns a
// [*LimitError].
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
