package deliver

import (
	"context"
	"fmt"
	"io"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// Only the status counts. We read the body to reuse the connection, unless it's longer or
// slower than this.
const (
	maxBodyBytes = 4 << 10
	maxBodyTime  = 250 * time.Millisecond
)

// Attempt is an attempt that may start now. It holds a slot of its client and of its
// receiver until you call Send or Cancel. Call one of them, once.
type Attempt struct {
	sender         *Sender
	client, entity string
	message        Message
	webhook        webhookcfg.Webhook
	slot           *slot
	isTest         bool
	result         Result // zero until the request has ended
}

// Begin looks up the webhook in effect for an entity and takes a slot for an attempt at it,
// without ever waiting for one. It's for queues that decide themselves what to send next, as
// package [example.com/go-webhookcfg/webhookcfg/deliver/outbox] does. Others call [Sender.Send].
//
// If the attempt is nil, nothing is sent, and the result says why, as it would for Send. Then
// [Result.Receiver] is the receiver that had no slot. With [ReasonBusy], a slot becomes free
// when one of the client's attempts ends. With [ReasonPaused], Wait is the rest of the pause.
// Begin tells [Options.OnResult] about undeliverable messages, but not about deferrals.
//
// A pause belongs to the webhook as it was set: Begin ends the pause of a receiver if the
// webhook has a later Since than the webhooks that failed there.
func (s *Sender) Begin(ctx context.Context, client, entity string, m Message) (*Attempt, Result) {
	start := time.Now()
	a, r := s.begin(ctx, client, entity, m, false)
	if r.Outcome == Undeliverable {
		return nil, s.report(ctx, client, entity, m.ID, r, start, start, false)
	}
	r.Duration = time.Since(start)
	return a, r
}

// Lookup returns the host and port of the webhook in effect for an entity, as in [Receiver],
// and since when it's in effect. The host and port are "" if it may not be called: then
// [Sender.Begin] says why. Lookup doesn't look at limits and pauses. Its error means that the
// webhook is unknown for now, as [ReasonUnavailable] does.
func (s *Sender) Lookup(ctx context.Context, client, entity string) (hostPort string, since time.Time, err error) {
	hook, r := s.resolve(ctx, client, entity, false)
	if hook != nil {
		return hostport(hook.URL), hook.Since, nil
	}
	if r.Outcome == Deferred {
		return "", time.Time{}, r.Err
	}
	return "", r.Webhook.Since, nil
}

// PerClient returns how many attempts for a client may be under way.
func (s *Sender) PerClient(client string) int {
	perClient, _ := s.options.limits(client)
	return perClient
}

// Send makes the attempt, as [Sender.Send] does. If that panics, see [Attempt.Result].
func (a *Attempt) Send(ctx context.Context) Result {
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
	defer func() { a.slot.release(time.Now(), v) }()
	r := a.request(ctx)
	r.Webhook = a.webhook
	if !a.sender.isTrial {
		v = r.verdict()
	}
	return r
}

// request sends the request.
func (a *Attempt) request(caller context.Context) Result {
	s, target := a.sender, a.webhook.URL
	limit := time.Now().Add(s.options.Timeout)
	ctx, cancel := context.WithDeadline(egress.ContextWithClient(caller, a.client), limit)
	defer cancel()
	keys, err := loadKeys(ctx, s.keys, newRecipient(a.client, a.entity, a.webhook))
	if err != nil {
		return unavailable(err)
	}
	now := time.Now()
	req, err := a.message.request(ctx, target, keys, now, s.options.UserAgent)
	if err != nil {
		return unavailable(err)
	}
	if err := s.options.prepare(ctx, a.client, a.entity, target, a.message, req); err != nil {
		return unavailable(err)
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

// Cancel gives the slot back without an attempt.
func (a *Attempt) Cancel() { a.slot.release(time.Now(), verdict{}) }

// Receiver returns the host and port of the webhook, as in [Receiver]. It's "" if no webhook
// was found.
func (r Result) Receiver() string {
	if r.Webhook.URL.IsZero() {
		return ""
	}
	return hostport(r.Webhook.URL)
}
