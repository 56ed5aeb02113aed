package outbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"example.com/go-webhookcfg/webhookcfg/deliver"
)

// drain is a line that a process has. One goroutine reads its notifications and starts the
// attempts, which have goroutines of their own.
type drain struct {
	process *process
	kick    chan struct{} // has an element after an event

	mu       sync.Mutex
	line     *line
	claimed  time.Time
	quiet    time.Time // since when there's nothing to do; zero if there is
	stopped  bool      // starts nothing
	yields   bool      // stopped, since others have its turn
	returned bool      // given back, or about to be
	reads    bool      // notifications are being read
	awake    bool      // it was woken, which isn't written
	saveAt   time.Time // no pauses are written before
	woken    time.Time // the last time
	recheck  time.Time // when to look up the webhooks again after it was woken

	paced, granted bool // the pace's: it waits to start an attempt, or may start one
}

// hasFresh says that there are fresh notifications. It reports whether that's news.
func (d *drain) hasFresh() bool {
	d.mu.Lock()
	l := d.line
	news := !l.fresh && l.unseen == 0 && !l.isBehind() && l.fruitless == 0
	l.fresh = true
	d.mu.Unlock()
	signal(d.kick)
	return news
}

// committed says that a notification has been committed just now.
func (d *drain) committed() {
	d.mu.Lock()
	d.line.event()
	d.mu.Unlock()
	d.hasFresh()
}

// run drains the line until it's given back or the process ends.
func (d *drain) run(ctx context.Context) {
	for {
		d.startAll(ctx)
		d.read(ctx)
		at, done := d.rest()
		if done {
			return
		}
		timer := time.NewTimer(max(time.Until(at), time.Millisecond))
		select {
		case <-d.kick:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// startAll starts as many attempts as the limits allow.
func (d *drain) startAll(ctx context.Context) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	d.line.unblock(now)
	d.recheckWebhooks(now)
	for m := d.next(now); m != nil; m = d.next(now) {
		d.process.attempts.Go(func() { d.attempts(ctx, m) })
	}
}

// next returns the message whose attempt may start now, or nil.
func (d *drain) next(now time.Time) *message {
	switch {
	case d.stopped || !d.process.mayStart():
		return nil
	case d.line.isBehind() && d.line.hasTurn(now) && !d.process.pace.take(d):
		return nil
	}
	return d.line.next(now)
}

// mark hands notifications over to be written as seen, with the line locked. They're written in
// order, as many at a time as the database takes, so if the process is killed meanwhile, the fresh
// ones are still those that come later.
func (d *drain) mark(seen []outcome) {
	if len(seen) == 0 {
		return
	}
	slices.SortFunc(seen, func(a, b outcome) int { return cmp.Compare(a.Seq, b.Seq) })
	all := make([]pending, len(seen))
	for i, o := range seen {
		all[i] = pending{outcome: o, drain: d}
	}
	d.line.marking += len(all)
	d.process.writer.mark(all)
}

// rest decides what to do while nothing can be started or read. It returns when to go on, or
// that the line is no longer this drain's.
func (d *drain) rest() (at time.Time, done bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	l, p := d.line, d.process
	if p.isLost() || d.returned || d.stopped && p.isStopping() {
		return at, true
	}
	d.mark(l.late(now))
	d.save(now)
	if !d.stopped && now.Sub(d.claimed) > slice && p.isScarce() {
		d.stopped, d.yields = true, true
	}
	isQuiet := l.isQuiet(now) && !d.reads
	d.setQuiet(isQuiet || d.yields, now)
	at = l.nextTime(now)
	if !d.recheck.IsZero() {
		at = earliest(at, d.recheck)
	}
	if l.changed {
		at = earliest(at, d.saveAt)
	}
	switch {
	case d.stopped:
		switch {
		case l.isIdle() && !d.reads:
			d.giveBack(0)
		case d.yields && p.hasTurn():
			d.stopped, d.yields, d.claimed = false, false, now
			d.setQuiet(false, now)
			return now, false
		}
		return now.Add(maxPoll), false
	case !isQuiet:
		return earliest(at, now.Add(keepUnseen)), false
	case now.Sub(d.quiet) >= hold && (at.IsZero() || at.Sub(now) > hold) && d.recheck.IsZero() && !l.isFailing():
		due := time.Duration(never / 2000 * time.Microsecond)
		if !at.IsZero() {
			due = at.Sub(now)
		}
		d.giveBack(due)
		return now.Add(time.Second), false
	default:
		return earliest(at, now.Add(hold)), false
	}
}

// setQuiet records whether the line has work, with the line locked. Only those that have some
// count as active.
func (d *drain) setQuiet(isQuiet bool, now time.Time) {
	if isQuiet == !d.quiet.IsZero() {
		return
	}
	d.quiet = time.Time{}
	if isQuiet {
		d.quiet = now
	}
	d.process.setActive(isQuiet)
}

// save writes the pauses for the next process if they have changed, and that a wake was
// heard.
func (d *drain) save(now time.Time) {
	l := d.line
	if d.awake {
		d.process.writer.update(lineUpdate{client: l.client, awake: true, drain: d})
	}
	if l.changed && !now.Before(d.saveAt) {
		d.process.writer.update(lineUpdate{client: l.client, pauses: l.pauseList(), drain: d})
		d.saveAt, l.changed = now.Add(saveEvery), false
	}
	d.awake = false
}

// giveBack returns the line to the table, due after a time. Nothing is under way.
func (d *drain) giveBack(due time.Duration) {
	if d.returned {
		return
	}
	d.returned, d.stopped = true, true
	d.process.writer.update(lineUpdate{client: d.line.client, giveBack: true, due: due, pauses: d.line.pauseList(), drain: d})
}

// attempts sends a message, and then others as long as the limits allow.
func (d *drain) attempts(ctx context.Context, m *message) {
	for m != nil {
		d.process.underWay.Add(1)
		r := contain(d.process.Outbox, func() deliver.Result { return d.send(ctx, m) }, panicked)
		d.process.underWay.Add(-1)
		if r.Outcome == deliver.Deferred && r.Reason == deliver.ReasonUnavailable {
			d.process.warnOfHost(ctx, d.line.client, m.entity, r.Err)
		}
		m = d.finish(m, r)
	}
}

// warnOfHost logs why nothing can be sent for an entity, since the host's part of it fails: the
// webhook, the keys or the request. The errors of package deliver quote no secrets, and a panic was
// logged.
func (p *process) warnOfHost(ctx context.Context, client, entity string, err error) {
	if err != nil && !errors.Is(err, errPanicked) {
		p.warn(ctx, "can't send for now", fmt.Errorf("client %q, entity %q: %w", client, entity, err))
	}
}

// finish decides what becomes of a message after an attempt. It returns the next message to
// send, or nil.
func (d *drain) finish(m *message, r deliver.Result) *message {
	d.mu.Lock()
	defer d.mu.Unlock()
	defer signal(d.kick)
	p, client, now := d.process, d.line.client, time.Now()
	hostport := r.Receiver()
	if r.Outcome == deliver.Deferred {
		d.line.deferred(m, hostport, r, now)
		return nil
	}
	d.line.works(m.entity, true, now)
	o, end := p.outcomeOf(client, m, r, now)
	seen := d.line.ended(m, end == nil, now)
	if r.Outcome == deliver.Failed || r.Status != 0 {
		d.line.observe(p.receiver(client, hostport), now)
	}
	p.writer.add(pending{outcome: o, drain: d, end: end})
	d.mark(seen) // after the outcome for which they wait, in case the process is killed in between
	return d.next(now)
}

// send makes the attempt, unless the lease or a limit forbids it.
func (d *drain) send(ctx context.Context, m *message) deliver.Result {
	p := d.process
	if m.body == nil {
		call, cancel := context.WithTimeout(ctx, callTimeout)
		body, err := p.queue.body(call, m.seq, m.enqueued)
		cancel()
		if err != nil {
			p.warn(ctx, "can't read a body", err)
			return unavailable
		}
		if body == nil {
			return deliver.Result{Outcome: deliver.Undeliverable, Reason: deliver.ReasonNoWebhook} // it was erased
		}
		m.body = body
	}
	call, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	a, r := p.sender.Begin(call, d.line.client, m.entity, deliver.Message{ID: m.id, ContentType: m.contentType, Body: m.body})
	if a == nil {
		return r
	}
	if !p.mayStart() {
		a.Cancel()
		return unavailable
	}
	r = contain(p.Outbox, func() deliver.Result { return a.Send(ctx) }, panicked)
	if made := a.Result(); made.Outcome != 0 {
		return made // also if a function of the host panicked after it
	}
	return r
}

// unavailable is the result if the queue itself keeps an attempt from starting.
var unavailable = deliver.Result{Outcome: deliver.Deferred, Reason: deliver.ReasonUnavailable, Err: errUnavailable}

var errUnavailable = errors.New("outbox: the queue is unavailable")
