package outbox

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/deliver/outbox/internal/line"
	"example.com/go-webhookcfg/webhookcfg/deliver/outbox/internal/queue"
)

// attempts makes the queue's attempts with a [deliver.Sender]. Panics of the host's functions end
// here.
type attempts struct{ *Outbox }

// Limits returns those of a client.
func (o attempts) Limits(client string) line.Limits {
	return contain(o.Outbox, func() line.Limits {
		perClient, perHost := o.sender.Limits(client)
		return line.Limits{PerClient: perClient, PerHost: perHost, MaxPause: o.sender.MaxPause()}
	}, line.Limits{PerClient: 1, PerHost: 1, MaxPause: time.Hour})
}

// Base returns a client's base, and whether the client has no overrides.
func (o attempts) Base(ctx context.Context, client string) (base line.Hook, isAlone bool, err error) {
	err = contain(o.Outbox, func() error {
		to, hasOverrides, err := o.sender.LookupBase(ctx, client)
		base, isAlone = o.hookOf(to), !hasOverrides
		return err
	}, errPanicked)
	if !errors.Is(err, errors.ErrUnsupported) {
		o.warnOfHost(ctx, client, "", err)
	}
	return base, isAlone, err
}

// Webhook returns the webhook in effect for an entity.
func (o attempts) Webhook(ctx context.Context, client, entity string) (h line.Hook, err error) {
	err = contain(o.Outbox, func() error {
		to, err := o.sender.Lookup(ctx, client, entity)
		h = o.hookOf(to)
		return err
	}, errPanicked)
	o.warnOfHost(ctx, client, entity, err)
	return h, err
}

// hookOf returns what the queue needs to know of a webhook.
func (o attempts) hookOf(to deliver.Destination) line.Hook {
	return line.Hook{
		Override: to.Webhook.Source == webhookcfg.SourceOverride || to.Webhook.Source == webhookcfg.SourceOff,
		Setting:  settingOf(to.Webhook),
		Host:     to.HostPort,
		Target:   maphash.String(o.seed, to.Webhook.URL.Reveal()),
	}
}

// settingOf identifies a webhook as it's set, for the queue.
func settingOf(hook webhookcfg.Webhook) int64 { return max(hook.Since.UnixMicro(), 1) }

// Begin returns an attempt at the webhook that's in effect now.
func (o attempts) Begin(ctx context.Context, client string, r *line.Row) (queue.Attempt, error) {
	m := deliver.Message{ID: r.ID, ContentType: r.ContentType, Body: r.Body}
	var a *deliver.Attempt
	result := contain(o.Outbox, func() (result deliver.Result) {
		a, result = o.sender.Begin(ctx, client, r.Entity, m)
		return result
	}, panicked)
	if a == nil && result.Outcome == deliver.Deferred {
		o.warnOfHost(ctx, client, r.Entity, result.Err)
		return nil, result.Err
	}
	return &attempt{o, client, r, a, result}, nil
}

// warnOfHost logs why nothing can be sent for an entity, since the host's part of it fails: the
// webhook, the keys or the request. The errors of package deliver quote no secrets, and a panic was
// logged.
func (o *Outbox) warnOfHost(ctx context.Context, client, entity string, err error) {
	if err != nil && !errors.Is(err, errPanicked) {
		o.warn(ctx, "can't send for now", fmt.Errorf("client %q, entity %q: %w", client, entity, err))
	}
}

// attempt is one of a notification.
type attempt struct {
	attempts
	client string
	row    *line.Row
	made   *deliver.Attempt // nil: the result is known already
	result deliver.Result
}

// Webhook is where the attempt goes.
func (a *attempt) Webhook() (h line.Hook, isKnown bool) {
	switch {
	case a.made != nil:
		return a.hookOf(a.made.Destination()), true
	case a.result.Reason == deliver.ReasonMessage:
		return h, false // it's invalid wherever it goes
	}
	return a.hookOf(deliver.Destination{Webhook: a.result.Webhook}), true
}

// Send makes the attempt.
func (a *attempt) Send(ctx context.Context) queue.Outcome {
	start := time.Now()
	r := a.result
	if a.made != nil {
		r = contain(a.Outbox, func() deliver.Result { return a.made.Send(ctx) }, panicked)
		if made := a.made.Result(); made.Outcome != 0 {
			r = made // also if a function of the host panicked after it
		}
	}
	if r.Outcome == deliver.Deferred && r.Reason != deliver.ReasonBusy {
		a.warnOfHost(ctx, a.client, a.row.Entity, r.Err)
	}
	return a.outcomeOf(r, start, time.Now())
}

// outcomeOf returns what becomes of the notification.
func (a *attempt) outcomeOf(r deliver.Result, start, now time.Time) queue.Outcome {
	o := queue.Outcome{Attempts: a.row.Attempts, Status: r.Status, Reason: string(r.Reason)}
	o.Start, o.Reason = start, string(r.Reason)
	o.Result.Reason = r.Reason.Public()
	took := a.row.Age + now.Sub(a.row.Taken)
	end := func(state int, shown State) queue.Outcome {
		o.State, o.HasEnded = state, true
		if f := a.options.OnEnd; f != nil {
			e := End{Client: a.client, State: shown, Reason: r.Reason, Attempts: o.Attempts, Took: took}
			o.OnWritten = func() { contain(a.Outbox, func() any { f(e); return nil }, nil) }
		}
		return o
	}
	if r.Outcome == deliver.Deferred {
		if o.IsOurs = true; a.row.Waited+now.Sub(a.row.Taken) > a.options.patience() {
			return end(queue.GivenUp, GivenUp)
		}
		return o
	}
	if r.Outcome == deliver.Delivered || r.Outcome == deliver.Failed || r.Status != 0 {
		o.Attempts++
		o.History = attemptText(now.Add(-r.Duration), r.Reason)
	}
	switch {
	case r.Outcome == deliver.Delivered:
		o.Effect = line.Success
	case r.IsUnconnected():
		o.Effect = line.NoConnection
	case r.Outcome == deliver.Failed, r.Reason == deliver.ReasonGone:
		o.Effect, o.Pause = line.Failure, r.Wait
	}
	switch decision := a.options.Schedule.Next(o.Attempts, r); {
	case decision.Action == deliver.Retry:
		o.Delay = max(decision.Delay, time.Microsecond)
		return o
	case r.Outcome == deliver.Delivered:
		return end(queue.Delivered, Delivered)
	case decision.Action == deliver.Done:
		return end(queue.Dropped, Dropped)
	}
	return end(queue.GivenUp, GivenUp)
}

// patience is how long failures on our side may keep a notification waiting since it was enqueued or
// sent again: as long as failures of its receiver could, and a day at least.
func (o *Options) patience() time.Duration {
	all := 24 * time.Hour
	for _, delay := range o.Schedule {
		all += delay
	}
	return all
}
