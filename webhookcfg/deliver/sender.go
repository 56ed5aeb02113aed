package deliver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// Resolver returns the webhook in effect for an entity. A [webhookcfg.Store] is one, and
// so is the Cache of package store/cache, with which most attempts read from memory.
type Resolver interface {
	// Resolve returns the zero Webhook if nothing is configured. An error that wraps
	// [webhookcfg.ErrInvalidArgument] means that it never succeeds for these names. It must
	// be safe for concurrent use, and return soon after ctx ended.
	Resolve(ctx context.Context, client, entity string) (webhookcfg.Webhook, error)
}

// Options are the options of [New]. The zero value is a safe default.
type Options struct {
	// Policy specifies which URLs and addresses may be called; it should be that of the
	// handler. If nil, the zero Policy is used: https and public addresses only.
	Policy *egress.Policy

	// Transport bounds the idle connections.
	Transport egress.TransportOptions

	// Timeout bounds an attempt, from the lookup of the keys to the header of the
	// response. Zero means 15 seconds; the most is 30 seconds, for which an
	// [egress.Transport] waits for a header.
	Timeout time.Duration

	// PerClient bounds the number of concurrent attempts for one client. Zero means 16.
	PerClient int

	// PerReceiver bounds the number of concurrent attempts for one client at one host
	// and port. Zero means 4.
	PerReceiver int

	// Limits returns the bounds of one client, for example by its plan. Each that is zero or
	// less means PerClient or PerReceiver. It is called by each Send that has a webhook, so
	// it should return at once, and it must be safe for concurrent use. If nil, all clients
	// have PerClient and PerReceiver.
	Limits func(client string) (perClient, perReceiver int)

	// Patience is how long Send may wait for a slot, if PerClient or PerReceiver attempts are
	// under way. Send waits only if it expects one within that time, and never for a receiver
	// whose last attempt failed. Zero means 250 milliseconds; if negative, Send never waits.
	Patience time.Duration

	// MaxPause bounds the pause of a receiver after failures in a row, and the one that
	// it can ask for with Retry-After. Zero means an hour.
	MaxPause time.Duration

	// Health records how deliveries go and stops those that are of no use. If nil,
	// nothing is recorded and nothing stopped.
	Health *Health

	// UserAgent is the field User-Agent of the requests. If empty, it is
	// "go-webhookcfg".
	UserAgent string

	// OnResult, if not nil, is called at the end of each Send with what that returns,
	// for metrics and logs; id is that of the message. It must be safe for concurrent
	// use, and delays the return of Send.
	OnResult func(ctx context.Context, client, entity, id string, r Result)

	// OnRecovered, if not nil, is called when a receiver that was paused has responded with
	// success, with its host and port as in [Receiver]. Make due what waits for it in your
	// queue: it would come back at 20 messages a second. It must be safe for concurrent use,
	// and delays the return of the Send that succeeded, but no other.
	OnRecovered func(ctx context.Context, client, hostport string)
}

// Defaults of [Options].
const (
	defaultTimeout     = 15 * time.Second
	maxTimeout         = 30 * time.Second
	defaultPerClient   = 16
	defaultPerReceiver = 4
	defaultPatience    = 250 * time.Millisecond
	defaultMaxPause    = time.Hour
	defaultUserAgent   = "go-webhookcfg"
)

// The status alone is the verdict of a receiver. The body is read so that the connection
// can be used again, unless it is longer or takes longer than this.
const (
	maxBodyBytes = 4 << 10
	maxBodyTime  = 250 * time.Millisecond
)

func (o *Options) complete() error {
	if min(o.Timeout, o.MaxPause) < 0 || min(o.PerClient, o.PerReceiver) < 0 {
		return errors.New("deliver: negative number in Options")
	}
	if o.Timeout > maxTimeout {
		return fmt.Errorf("deliver: Options.Timeout is %v, want %v or less", o.Timeout, maxTimeout)
	}
	if !isFieldValue(o.UserAgent) {
		return errors.New("deliver: Options.UserAgent is not a value of a header field")
	}
	o.Timeout = cmp.Or(o.Timeout, defaultTimeout)
	o.PerClient = cmp.Or(o.PerClient, defaultPerClient)
	o.PerReceiver = cmp.Or(o.PerReceiver, defaultPerReceiver)
	o.Patience = cmp.Or(o.Patience, defaultPatience)
	o.MaxPause = cmp.Or(o.MaxPause, defaultMaxPause)
	o.UserAgent = cmp.Or(o.UserAgent, defaultUserAgent)
	if o.Policy == nil {
		o.Policy = new(egress.Policy)
	}
	o.Policy = o.Policy.Clone()
	return nil
}

// limits returns the limits of a client.
func (o *Options) limits(client string) (perClient, perReceiver int) {
	if o.Limits != nil {
		perClient, perReceiver = o.Limits(client)
	}
	if perClient <= 0 {
		perClient = o.PerClient
	}
	if perReceiver <= 0 {
		perReceiver = o.PerReceiver
	}
	return perClient, perReceiver
}

// Sender makes attempts to deliver messages. It is safe for concurrent use and need not be
// closed. Its limits and its connections are those of one Sender: make one per process.
type Sender struct {
	webhooks  Resolver
	keys      Keys
	options   Options
	transport *egress.Transport
	limiter   *limiter
	tests     *tests
}

// New returns a sender that resolves through webhooks and signs with keys. If opts is nil,
// the zero value is used. The error reports a missing argument or an invalid option, or is
// that of [egress.Policy.Transport].
func New(webhooks Resolver, keys Keys, opts *Options) (*Sender, error) {
	if webhooks == nil || keys == nil {
		return nil, errors.New("deliver: New without a Resolver or without Keys")
	}
	var o Options
	if opts != nil {
		o = *opts
	}
	if err := o.complete(); err != nil {
		return nil, err
	}
	transport, err := o.Policy.Transport(&o.Transport)
	if err != nil {
		return nil, err
	}
	return &Sender{
		webhooks:  webhooks,
		keys:      keys,
		options:   o,
		transport: transport,
		limiter:   newLimiter(&o),
		tests:     newTests(),
	}, nil
}

// CloseIdleConnections closes the connections that are not in use.
func (s *Sender) CloseIdleConnections() { s.transport.CloseIdleConnections() }

// Send makes one attempt to deliver a message to the webhook that is in effect for an
// entity of a client, or none, and returns what became of it. It waits for a slot for up to
// [Options.Patience].
//
// ctx bounds all of it, except for two seconds that a [HealthStore] may take. If it is
// cancelled, the outcome is [Deferred]: the receiver may have received the message, but has
// not failed. Its deadline is one for the receiver, too, once that is being called. The
// Resolver is bounded by ctx alone, the attempt also by [Options.Timeout]; once the header of
// a response has arrived, it ends within 250 milliseconds.
//
// A panic of the Resolver, of Keys, of the HealthStore or of a function in Options is one of
// Send. What the attempt held is released.
func (s *Sender) Send(ctx context.Context, client, entity string, m Message) Result {
	start := time.Now()
	r, attempted := s.send(ctx, client, entity, m)
	r.Duration = time.Since(start)
	s.report(ctx, client, entity, m.ID, r, attempted)
	return r
}

// report tells the host of a result.
func (s *Sender) report(ctx context.Context, client, entity, id string, r Result, attempted time.Time) {
	s.options.Health.record(ctx, client, entity, r, attempted)
	if s.options.OnResult != nil {
		s.options.OnResult(ctx, client, entity, id, r)
	}
}

// send returns the result, and when the attempt started.
func (s *Sender) send(ctx context.Context, client, entity string, m Message) (r Result, attempted time.Time) {
	if r = s.resolve(ctx, client, entity, m); r.Outcome != 0 {
		return r, time.Now()
	}
	hook, receiver := r.Webhook, hostport(r.Webhook.URL)
	grant, waited := s.limiter.acquire(ctx, client, receiver)
	if grant.slot == nil {
		r = grant.deferral(ctx)
		r.Webhook = hook
		return r, time.Now()
	}
	defer func() { s.release(ctx, grant.slot, r) }()
	if waited {
		if r = s.resolveAgain(ctx, client, entity, m, hook.URL); r.Outcome != 0 {
			return r, time.Now()
		}
		hook = r.Webhook
	}
	attempted = time.Now()
	r = s.attempt(ctx, client, hook.URL, m)
	r.Webhook = hook
	return r, attempted
}

// release ends the use of a slot.
func (s *Sender) release(ctx context.Context, slot *slot, r Result) {
	recovered := slot.release(time.Now(), r.verdict())
	if recovered && s.options.OnRecovered != nil {
		s.options.OnRecovered(ctx, slot.key.client, slot.key.hostport)
	}
}

// resolve returns a result with the webhook in effect. Its Outcome is zero if an attempt may
// be made.
func (s *Sender) resolve(ctx context.Context, client, entity string, m Message) Result {
	if client == "" || entity == "" {
		return Result{Outcome: Undeliverable, Reason: ReasonMessage, Err: errAddressee}
	}
	if err := m.Validate(); err != nil {
		return Result{Outcome: Undeliverable, Reason: ReasonMessage, Err: err}
	}
	hook, err := s.webhooks.Resolve(ctx, client, entity)
	if err != nil {
		return unresolved(err)
	}
	if reason, stopped := s.options.Health.syncStopped(ctx, client, entity, hook); stopped {
		err := fmt.Errorf("deliver: webhook was stopped: %s", reason)
		return Result{Outcome: Undeliverable, Reason: ReasonStopped, Webhook: hook, Err: err}
	}
	return s.check(ctx, hook)
}

// unresolved returns the result if the webhook could not be read.
func unresolved(err error) Result {
	if errors.Is(err, webhookcfg.ErrInvalidArgument) {
		return Result{Outcome: Undeliverable, Reason: ReasonMessage, Err: fmt.Errorf("deliver: client or entity: %w", err)}
	}
	return unavailable(fmt.Errorf("deliver: webhook of the entity: %w", err))
}

// resolveAgain is resolve for an attempt that has waited for a slot at the receiver of a URL.
func (s *Sender) resolveAgain(ctx context.Context, client, entity string, m Message, before egress.URL) Result {
	r := s.resolve(ctx, client, entity, m)
	if r.Outcome == 0 && !r.Webhook.URL.Equal(before) {
		return Result{Outcome: Deferred, Reason: ReasonBusy, Wait: minTurn, Webhook: r.Webhook, Err: errChanged}
	}
	return r
}

// check returns a result with a webhook. Its Outcome is zero if the URL may be called.
func (s *Sender) check(ctx context.Context, hook webhookcfg.Webhook) Result {
	var r Result
	if hook.URL.IsZero() {
		r = Result{Outcome: Undeliverable, Reason: ReasonNoWebhook}
	} else if err := s.options.Policy.CheckContext(ctx, hook.URL.Reveal()); errors.Is(err, egress.ErrUnavailable) {
		r = unavailable(err)
	} else if err != nil {
		r = Result{Outcome: Undeliverable, Reason: ReasonPolicy, Err: err}
	}
	r.Webhook = hook
	return r
}

// deferral returns the result of an attempt that got no slot.
func (g grant) deferral(ctx context.Context) Result {
	if err := ctx.Err(); err != nil {
		return unavailable(fmt.Errorf("deliver: context of the caller: %w", err))
	}
	err := errBusy
	if g.reason == ReasonPaused {
		err = errPaused
	}
	return Result{Outcome: Deferred, Reason: g.reason, Wait: g.wait, Err: err}
}

var (
	errAddressee = errors.New("deliver: message without a client or an entity")
	errBusy      = errors.New("deliver: as many attempts as allowed are under way")
	errPaused    = errors.New("deliver: receiver is paused")
	errChanged   = errors.New("deliver: webhook changed while the message waited for a slot")
)

// hostport returns host and port of a URL that the policy allows. They are the same for
// a name in any letter case, and with the default port or without.
func hostport(target egress.URL) string {
	u, err := url.Parse(target.Reveal())
	if err != nil {
		return "" // no policy allows it
	}
	port := u.Port()
	switch {
	case port != "":
	case u.Scheme == "https":
		port = "443"
	default:
		port = "80"
	}
	return strings.ToLower(u.Hostname()) + ":" + port
}

// attempt sends the request.
func (s *Sender) attempt(caller context.Context, client string, target egress.URL, m Message) Result {
	ctx, cancel := context.WithTimeout(caller, s.options.Timeout)
	defer cancel()
	keys, err := loadKeys(ctx, s.keys, client)
	if err != nil {
		return unavailable(err)
	}
	now := time.Now()
	req, err := m.request(ctx, target, keys, now, s.options.UserAgent)
	if err != nil {
		return unavailable(err)
	}
	if err := caller.Err(); err != nil {
		return unavailable(fmt.Errorf("deliver: context of the caller: %w", err))
	}
	resp, err := s.transport.RoundTrip(req)
	if err != nil {
		return noResponse(err)
	}
	finish(resp.Body, cancel)
	return judge(target, resp, s.options.MaxPause)
}

// finish reads a body to its end, so that the connection can be used again, or cancels the
// request.
func finish(body io.ReadCloser, cancel context.CancelFunc) {
	timer := time.AfterFunc(maxBodyTime, cancel)
	defer timer.Stop()
	_, _ = io.CopyN(io.Discard, body, maxBodyBytes+1) // whatever it is, the status counts
	_ = body.Close()
}
