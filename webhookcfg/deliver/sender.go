package deliver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"example.com/go-webhookcfg/internal/redact"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// Resolver returns the webhook in effect for an entity. Use your [webhookcfg.Store], or put an
// [example.com/go-webhookcfg/store/cache.Cache] in front of it, so that most attempts read from
// memory.
type Resolver interface {
	// Resolve returns the zero Webhook if nothing is configured. If its error wraps
	// [webhookcfg.ErrInvalidArgument], the message is set aside, since trying again with
	// these names is pointless. Resolve must be safe for concurrent use, and return soon
	// after ctx ends.
	Resolve(ctx context.Context, client, entity string) (webhookcfg.Webhook, error)
}

// Options are the options of [New]. The zero value is safe to use.
type Options struct {
	// Policy says which URLs and addresses may be called. Use the handler's policy. If nil,
	// the zero Policy applies: https and public addresses only.
	Policy *egress.Policy

	// Transport bounds the idle connections.
	Transport egress.TransportOptions

	// Timeout bounds an attempt, from the lookup of the keys to the header of the response.
	// Zero means 15 seconds. The maximum is 30 seconds. If jobs of your queue have a time
	// limit, give them a few seconds more than Timeout.
	Timeout time.Duration

	// PerClient is how many attempts for one client can be under way. Zero means 16.
	PerClient int

	// PerHost is how many attempts for one client at one host and port can be under way, whichever
	// of its webhooks lead there. Zero means 4.
	PerHost int

	// Limits returns a client's own limits, for example by its plan. Zero or less means
	// PerClient or PerHost. Every Send that finds a webhook calls it, so it should return at
	// once, and it must be safe for concurrent use. If nil, all clients have PerClient and
	// PerHost.
	Limits func(client string) (perClient, perHost int)

	// MaxPause bounds the pauses of a webhook or a host after failures in a row, and the ones that
	// receivers ask for with Retry-After. Zero means an hour.
	MaxPause time.Duration

	// MaxBody is the maximum size of a message's body in bytes. A larger message is
	// undeliverable with [ReasonMessage]. Zero means 256 KiB. Most receivers have limits of their
	// own, and the specification recommends less than 20 kB.
	MaxBody int

	// Health records how deliveries go, and stops deliveries to dead webhooks. If nil,
	// nothing is recorded or stopped, so after a [ReasonGone] you decide yourself whether to go
	// on sending.
	Health *Health

	// UserAgent is the User-Agent of the requests. Empty means "go-webhookcfg", which probes send,
	// too, whatever you set here.
	UserAgent string

	// Prepare adds fields to the header of a request, for each attempt and each test, after the
	// request was signed. Examples are a second signature that your receivers know from before,
	// trace context, or the WebHook-Request-Origin of [egress.Handshake]. The entity is "" for a
	// test of the base.
	//
	// Prepare gets a copy of the message and of the request, and only the copy's Header is sent.
	// If Prepare returns an error, panics, or changes anything that isn't its own, nothing is
	// sent, and the message is deferred with [ReasonUnavailable] and an error that says why. Its
	// own are all fields but webhook-id, webhook-timestamp, webhook-signature and those of the
	// connection, such as Connection, Content-Length, Expect or Proxy-Authorization.
	//
	// Prepare must be safe for concurrent use, and return soon after ctx ends, which is after
	// Timeout at the latest. The attempt waits for it and keeps its slots. If nil, nothing is
	// added.
	Prepare func(ctx context.Context, client, entity string, m Message, r *http.Request) error

	// OnResult is called at the end of each Send with its result, for metrics and logs. The
	// id is the message's. It must be safe for concurrent use, and Send waits for it. If nil,
	// it's not called.
	//
	// It's also called after a [Sender.Test] and a [Sender.Try]. What is tried isn't set: the
	// Webhook of that result has the Source SourceNone. If you act on a ReasonGone, leave those out.
	OnResult func(ctx context.Context, client, entity, id string, r Result)
}

// Defaults of [Options].
const (
	defaultTimeout   = 15 * time.Second
	maxTimeout       = 30 * time.Second
	defaultUserAgent = "go-webhookcfg"
)

func (o *Options) complete() error {
	if min(o.Timeout, o.MaxPause) < 0 || min(o.PerClient, o.PerHost, o.MaxBody) < 0 {
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
	o.PerHost = cmp.Or(o.PerHost, defaultPerHost)
	o.MaxPause = cmp.Or(o.MaxPause, defaultMaxPause)
	o.MaxBody = cmp.Or(o.MaxBody, defaultMaxBody)
	o.UserAgent = cmp.Or(o.UserAgent, defaultUserAgent)
	if o.Policy == nil {
		o.Policy = new(egress.Policy)
	}
	o.Policy = o.Policy.Clone()
	return nil
}

// limits returns the limits of a client.
func (o *Options) limits(client string) (perClient, perHost int) {
	if o.Limits != nil {
		perClient, perHost = o.Limits(client)
	}
	if perClient <= 0 {
		perClient = o.PerClient
	}
	if perHost <= 0 {
		perHost = o.PerHost
	}
	return perClient, perHost
}

// Sender delivers messages. Make one per process: its limits and connections aren't shared
// with other Senders. It's safe for concurrent use, and you don't need to close it.
type Sender struct {
	webhooks  Resolver
	keys      Keys
	options   Options
	transport *egress.Transport
	limiter   *limiter
	isTrial   bool // what comes of an attempt says nothing about the webhook in effect
}

// New returns a sender that looks up webhooks with a [Resolver] and signs with keys. Nil opts
// means the zero value. The error reports a missing argument or an invalid option, or comes from
// [egress.Policy.Transport].
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
	}, nil
}

// CloseIdleConnections closes connections that aren't in use.
func (s *Sender) CloseIdleConnections() { s.transport.CloseIdleConnections() }

// Send makes at most one attempt to deliver a message to the webhook in effect for an entity,
// and returns the result. It never waits for a slot.
//
// Cancel ctx to abandon the attempt, for example at a shutdown. The outcome is then
// [Deferred], although the receiver may have got the message. A deadline in ctx is different:
// a receiver that doesn't respond by then has failed. That's not so in a [Sender.Test]. ctx
// limits the time of everything except a [HealthStore], which may take two seconds more. It's
// the only limit for the Resolver. The attempt is also limited by [Options.Timeout]. Once the
// header of the response has arrived, it ends within 250 milliseconds.
//
// If the [Resolver], the [HealthStore] or a function in [Options] panics, Send releases what it
// holds and passes the panic on. A panic of the Keys or of [Options.Prepare] only defers the
// message.
func (s *Sender) Send(ctx context.Context, client, entity string, m Message) Result {
	return s.send(ctx, client, entity, m, false)
}

// send makes an attempt if one may start now, and reports the result.
func (s *Sender) send(ctx context.Context, client, entity string, m Message, isTest bool) Result {
	start := time.Now()
	a, r := s.begin(ctx, client, entity, m, isTest)
	attempted := time.Now()
	if a != nil {
		defer a.end()
		r = a.use(ctx)
	}
	switch {
	case r.Outcome != Deferred:
	case isTest:
		r.Wait = max(r.Wait, minWait)
	default:
		r.Wait = stagger(r.Wait)
	}
	return s.report(ctx, client, entity, m.ID, r, start, attempted, isTest)
}

// report tells the host about a result, and returns it with its duration.
func (s *Sender) report(ctx context.Context, client, entity, id string, r Result, start, attempted time.Time, isTest bool) Result {
	r.Duration = time.Since(start)
	if err := s.options.Health.record(ctx, client, entity, r, attempted, isTest); err != nil {
		r.Err = err
	}
	if s.options.OnResult != nil {
		s.options.OnResult(ctx, client, entity, id, r)
	}
	return r
}

// begin returns an attempt that may start now. If it's nil, the result says why.
func (s *Sender) begin(ctx context.Context, client, entity string, m Message, isTest bool) (*Attempt, Result) {
	hook, r := s.find(ctx, client, entity, m, isTest)
	if hook == nil {
		return nil, r
	}
	key, ok := newWebhookKey(client, entity, hook.Source)
	switch {
	case s.isTrial:
		key = webhookKey{client: client}
	case !ok: // the Resolver doesn't say
		key = webhookKey{client, webhookcfg.Entity(entity)}
	}
	slot, r := s.limiter.acquire(key, s.limiter.setting(*hook), time.Now(), isTest)
	if slot != nil {
		return &Attempt{sender: s, client: client, entity: entity, message: m, webhook: *hook, slot: slot, isTest: isTest}, Result{}
	}
	if err := ctx.Err(); err != nil {
		r = unavailable(fmt.Errorf("deliver: context of the caller: %w", err))
	}
	r.Webhook = *hook
	return nil, r
}

// find returns the webhook for a message. If it's nil, the result says why.
func (s *Sender) find(ctx context.Context, client, entity string, m Message, isTest bool) (*webhookcfg.Webhook, Result) {
	if client == "" || entity == "" && !isTest {
		return nil, undeliverable(ReasonMessage, errAddressee)
	}
	if err := m.Validate(); err != nil {
		return nil, undeliverable(ReasonMessage, err)
	}
	if err := m.checkSize(s.options.MaxBody); err != nil {
		return nil, undeliverable(ReasonMessage, err)
	}
	return s.resolve(ctx, client, entity, isTest)
}

// resolve returns the webhook in effect if it may be called. If it's nil, the result says why.
func (s *Sender) resolve(ctx context.Context, client, entity string, isTest bool) (*webhookcfg.Webhook, Result) {
	hook, err := s.lookUp(ctx, client, entity)
	if errors.Is(err, webhookcfg.ErrInvalidArgument) {
		return nil, undeliverable(ReasonMessage, redact.Error(redact.Printable(redact.URLs("deliver: client or entity: "+err.Error())), err))
	}
	if err != nil {
		return nil, unavailable(redact.Error(redact.Printable(redact.URLs("deliver: webhook of the entity: "+err.Error())), err))
	}
	return s.check(ctx, client, entity, hook, isTest)
}

// check returns a webhook if it may be called. If it's nil, the result says why.
func (s *Sender) check(ctx context.Context, client, entity string, hook webhookcfg.Webhook, isTest bool) (*webhookcfg.Webhook, Result) {
	// A test needs the record of this setting, too: a success then ends its stop, here and in
	// the HealthStore.
	reason, stopped := s.options.Health.syncStopped(ctx, client, entity, hook)
	var r Result
	if stopped && !isTest {
		r = undeliverable(ReasonStopped, fmt.Errorf("deliver: webhook was stopped: %s", reason))
	} else if hook.Source == webhookcfg.SourceOff {
		r = undeliverable(ReasonOff, nil)
	} else if hook.URL.IsZero() {
		r = undeliverable(ReasonNoWebhook, nil)
	} else if err := s.options.Policy.CheckStored(ctx, hook.URL.Reveal()); errors.Is(err, egress.ErrUnavailable) {
		r = unavailable(err)
	} else if err != nil {
		r = undeliverable(ReasonPolicy, err)
	} else {
		return &hook, Result{}
	}
	r.Webhook = hook
	return nil, r
}

// lookUp returns the webhook in effect for an entity, or the base if the entity is "".
func (s *Sender) lookUp(ctx context.Context, client, entity string) (webhookcfg.Webhook, error) {
	if entity != "" {
		return s.webhooks.Resolve(ctx, client, entity)
	}
	lister, ok := s.webhooks.(webhookcfg.Lister)
	if !ok {
		return webhookcfg.Webhook{}, errNoLister
	}
	page, err := lister.List(ctx, client, "", 1)
	return page.Base, err
}

var (
	errAddressee = errors.New("deliver: message without a client or an entity")
	errNoLister  = fmt.Errorf("the Resolver is no Lister, which a test of the base needs: %w", webhookcfg.ErrInvalidArgument)
)

// hostport returns the host and port of a URL that the policy allows, with the port even if
// it's the default one.
func hostport(target egress.URL) string {
	_, hostport, _ := strings.Cut(target.Origin(), "://")
	return hostport
}
