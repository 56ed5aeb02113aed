package deliver

import (
	"context"
	"errors"
	"fmt"
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
