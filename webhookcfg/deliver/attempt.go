package deliver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"example.com/go-webhookcfg/internal/redact"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// Only the status counts. We read the body to reuse the connection, unless it's longer or
// slower than this.
const (
	maxBodyBytes = 4 << 10
	maxBodyTime  = 250 * time.Millisecond
)

// Attempt is one that a queue makes which decides itself what to send next. See [Sender.Begin].
type Attempt struct {
	sender         *Sender
	client, entity string
	message        Message
	webhook        webhookcfg.Webhook
	slot           *slot // nil: the queue has limits and pauses of its own
	isTest         bool
	endTrial       func() // of a stopped webhook that was set again, or nil
	result         Result // zero until the request has ended
}

// Destination is where the messages of an entity go.
type Destination struct {
	// Webhook is the one in effect. It's the zero Webhook if nothing is configured.
	Webhook webhookcfg.Webhook
	// HostPort is the host, in lower case, and the port, even if the URL has none. It's "" if nothing
	// may be called: then [Sender.Begin] says why.
	HostPort string
}

// Begin looks up the webhook in effect for an entity and returns an attempt at it. It's for queues that
// decide themselves what to send next, as package
// [example.com/go-webhookcfg/webhookcfg/deliver/outbox] does: Begin takes no slot, and knows no pauses.
// Others call [Sender.Send].
//
// If the attempt is nil, nothing is sent, and the result says why, as it would for Send. Begin tells
// [Options.OnResult] about undeliverable messages, but not about deferrals.
func (s *Sender) Begin(ctx context.Context, client, entity string, m Message) (*Attempt, Result) {
	start := time.Now()
	hook, r := s.find(ctx, client, entity, m, false)
	r.Duration = time.Since(start)
	switch {
	case hook != nil:
		return &Attempt{sender: s, client: client, entity: entity, message: m, webhook: *hook}, Result{}
	case r.Outcome == Undeliverable:
		return nil, s.report(ctx, client, entity, m.ID, r, start, start, false)
	}
	return nil, r
}

// Lookup returns where the messages of an entity go. Its error means that this is unknown for now, as
// [ReasonUnavailable] does.
func (s *Sender) Lookup(ctx context.Context, client, entity string) (Destination, error) {
	hook, r := s.resolve(ctx, client, entity, false)
	switch {
	case hook != nil:
		return Destination{*hook, hostport(hook.URL)}, nil
	case r.Outcome == Deferred:
		return Destination{}, r.Err
	}
	return Destination{Webhook: r.Webhook}, nil
}

// LookupBase is Lookup for a client's base. It also returns whether the client has overrides. The
// error is [errors.ErrUnsupported] if the [Resolver] is no [webhookcfg.Lister].
func (s *Sender) LookupBase(ctx context.Context, client string) (to Destination, hasOverrides bool, err error) {
	lister, ok := s.webhooks.(webhookcfg.Lister)
	if !ok {
		return Destination{}, false, errors.ErrUnsupported
	}
	page, err := lister.List(ctx, client, "", 1)
	if err != nil {
		return Destination{}, false, redact.Error(redact.Printable(redact.URLs("deliver: webhooks of the client: "+err.Error())), err)
	}
	hook, r := s.check(ctx, client, "", page.Base, false)
	switch {
	case hook != nil:
		to = Destination{*hook, hostport(hook.URL)}
	case r.Outcome == Deferred:
		return Destination{}, false, r.Err
	default:
		to = Destination{Webhook: r.Webhook}
	}
	return to, len(page.Overrides) > 0, nil
}

// Limits returns how many attempts may be under way for a client, and how many of them at one host and
// port.
func (s *Sender) Limits(client string) (perClient, perHost int) { return s.options.limits(client) }

// MaxPause returns the longest pause after failures.
func (s *Sender) MaxPause() time.Duration { return s.options.MaxPause }

// Destination returns where the attempt goes.
func (a *Attempt) Destination() Destination { return Destination{a.webhook, hostport(a.webhook.URL)} }

// Send makes the attempt, as [Sender.Send] does. If that panics, see [Attempt.Result].
func (a *Attempt) Send(ctx context.Context) Result {
	defer a.end()
	start := time.Now()
	a.result = a.use(ctx)
	a.result.Duration = time.Since(start)
	return a.sender.report(ctx, a.client, a.entity, a.message.ID, a.result, start, start, false)
}

// Result returns what became of the request, if Send panicked because the HealthStore or
// [Options.OnResult] did. A queue that recovers from that should go on with this result, since
// the receiver may have got the message. Its Outcome is zero if there was no request.
func (a *Attempt) Result() Result { return a.result }

// use sends the request and releases the slot, also if a function of the host panics.
func (a *Attempt) use(ctx context.Context) Result {
	var v verdict // of a panic, or of a trial: none
	if a.slot != nil {
		defer func() { a.slot.release(time.Now(), v) }()
	}
	r := deferred(ReasonBusy, minWait, errBusy)
	if a.mayTry() {
		r = a.request(ctx)
	}
	r.Webhook = a.webhook
	if !a.sender.isTrial {
		v = r.verdict()
	}
	return r
}

// mayTry reports whether the Health lets the attempt be made, unless it's a test.
func (a *Attempt) mayTry() (ok bool) {
	if a.isTest {
		return true
	}
	a.endTrial, ok = a.sender.options.Health.try(a.client, a.entity, a.webhook)
	return ok
}

// end says that what became of the attempt is recorded.
func (a *Attempt) end() {
	if a.endTrial != nil {
		a.endTrial()
	}
}

// request sends the request.
func (a *Attempt) request(caller context.Context) Result {
	s, target := a.sender, a.webhook.URL
	limit := time.Now().Add(s.options.Timeout)
	ctx, cancel := context.WithDeadline(egress.ContextWithClient(caller, a.client), limit)
	defer cancel()
	keys, err := loadKeys(ctx, s.keys, newRecipient(a.client, a.entity, a.webhook))
	if err != nil {
		return unavailableUnless(err)
	}
	now := time.Now()
	req, err := a.message.request(ctx, target, keys, now, s.options.UserAgent)
	if err != nil {
		return unavailable(err)
	}
	if err := s.options.prepare(ctx, a.client, a.entity, target, a.message, req); err != nil {
		return unavailableUnless(err)
	}
	if err := ctx.Err(); err != nil {
		return unavailable(fmt.Errorf("deliver: context before the request: %w", err))
	}
	resp, err := s.transport.RoundTrip(req)
	if err != nil {
		return noResponse(err, a.isTest && isCutShort(caller, limit))
	}
	finish(resp.Body, cancel)
	return judge(target, resp, s.options.MaxPause)
}

// isCutShort reports whether the caller's deadline has passed, and came before the limit. It
// compares times, because the connection can notice before the context does.
func isCutShort(caller context.Context, limit time.Time) bool {
	deadline, ok := caller.Deadline()
	return ok && deadline.Before(limit) && !time.Now().Before(deadline)
}

// finish reads a body to its end, so that the connection can be reused, or cancels the
// request.
func finish(body io.ReadCloser, cancel context.CancelFunc) {
	timer := time.AfterFunc(maxBodyTime, cancel)
	defer timer.Stop()
	if _, err := io.CopyN(io.Discard, body, maxBodyBytes+1); err == nil { // a failure doesn't matter: the status counts
		cancel() // since Go 1.27, Close reads on
	}
	_ = body.Close()
}
