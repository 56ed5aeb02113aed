package outbox

import (
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"example.com/go-webhookcfg/webhookcfg/deliver"
)

// deferred puts a message back that got no slot.
func (l *line) deferred(m *message, hostport string, r deliver.Result, now time.Time) {
	l.end(m)
	m.state = queued
	switch {
	case errors.Is(r.Err, errUnavailable):
		l.resume = now.Add(jitter(time.Second))
	case r.Reason == deliver.ReasonUnavailable:
		l.fails(m.entity, now)
		l.move(m, l.receiver(l.routes[m.entity]), now)
	default:
		l.route(m.entity, hostport, r.Webhook.Since, now)
		l.move(m, l.receiver(l.routes[m.entity]), now)
		m.receiver.blocked = now.Add(max(r.Wait, time.Millisecond))
	}
	m.receiver.queue = slices.Insert(m.receiver.queue, 0, m)
	if m.receiver.blocked.Sub(now) > time.Second {
		l.park(m.receiver)
	}
	l.takeTurn(m.receiver)
}

// outcomeOf returns what to write after an attempt. The End is nil if there's to be another.
func (p *process) outcomeOf(client string, m *message, r deliver.Result, now time.Time) (outcome, *End) {
	attempts := m.attempts
	history := ""
	if r.Outcome == deliver.Delivered || r.Outcome == deliver.Failed || r.Status != 0 {
		attempts++
		history = attemptText(now.Add(-r.Duration), r.Reason)
	}
	o := outcome{Seq: m.seq, Enqueued: m.enqueued, Attempts: attempts, History: history, Status: r.Status, Reason: string(r.Reason), Since: r.Webhook.Since.UnixMicro()}
	decision := p.options.Schedule.Next(attempts, r)
	state := GivenUp
	switch {
	case decision.Action == deliver.Retry:
		o.State, o.Delay = stateWaiting, max(decision.Delay.Microseconds(), 1)
		return o, nil
	case r.Outcome == deliver.Delivered:
		o.State, state = stateDelivered, Delivered
	case decision.Action == deliver.Done:
		o.State, state = stateDropped, Dropped
	default:
		o.State = stateGivenUp
	}
	return o, &End{Client: client, State: state, Reason: r.Reason, Attempts: attempts, Took: m.age + now.Sub(m.taken)}
}

// jitter returns a random duration from d/2 to 3d/2.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d) }
