package deliver

import (
	"context"
	"hash/maphash"
	"sync"
	"time"

	"example.com/go-webhookcfg/internal/lru"
)

// maxIdle is how many receivers without attempts we remember, for their failures, pauses and
// turns. Beyond that we forget one of the client that has the most. If that receiver fails,
// it costs five more attempts.
const maxIdle = 10_000

// limiter keeps a client or a receiver from taking all workers of a queue. It bounds the
// attempts under way and pauses failing receivers. An attempt gets a slot now, waits for one
// briefly, or is deferred. It is safe for concurrent use.
type limiter struct {
	limits   func(client string) (perClient, perReceiver int)
	patience time.Duration
	maxPause time.Duration

	mu        sync.Mutex
	clients   map[string]*client               // with attempts under way
	receivers map[receiverKey]*receiver        // with attempts under way or waiting
	idle      *lru.Map[receiverKey, *receiver] // without, but with failures, a pause or a turn
}

// newLimiter returns a limiter with the limits of complete options.
func newLimiter(o *Options) *limiter {
	seed := maphash.MakeSeed()
	return &limiter{
		limits:    o.limits,
		patience:  o.Patience,
		maxPause:  o.MaxPause,
		clients:   make(map[string]*client),
		receivers: make(map[receiverKey]*receiver),
		idle: lru.NewShared[receiverKey, *receiver](maxIdle, func(k receiverKey) uint64 {
			return maphash.String(seed, k.client)
		}),
	}
}

// slot permits one attempt, until its release.
type slot struct {
	limiter  *limiter
	key      receiverKey
	client   *client
	receiver *receiver
	start    time.Time
}

// grant is a slot, or why there is none.
type grant struct {
	slot   *slot
	reason Reason
	wait   time.Duration // until the next turn
}

// acquire returns a slot for an attempt at a host and port, and whether it waited for it. It
// waits if it expects a slot within the patience, the receiver didn't just fail, and ctx
// hasn't ended.
//
// Otherwise it returns the time until the attempt's turn. Turns follow each other at the pace
// at which slots become free, so that deferred messages don't all come back at once. A turn
// doesn't reserve a slot.
func (l *limiter) acquire(ctx context.Context, client, hostport string) (g grant, waited bool) {
	perClient, perReceiver := l.limits(client)
	g, w := l.enter(receiverKey{client, hostport}, perClient, perReceiver, time.Now())
	if w == nil {
		return g, false
	}
	return w.await(ctx), true
}

// acquireNow returns a slot, even at a receiver that is paused after failures, or how long it
// may take until one is free.
func (l *limiter) acquireNow(key receiverKey) grant {
	perClient, perReceiver := l.limits(key.client)
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	c, r := l.client(key.client), l.receiver(key)
	c.limit, c.perReceiver = perClient, perReceiver
	l.advance(c, now) // the limits may have grown
	if now.Before(r.asked) {
		return grant{reason: ReasonPaused, wait: r.asked.Sub(now)}
	}
	if !c.hasSlot(r) {
		return grant{reason: ReasonBusy, wait: max(c.expect(r, now), minTurn)}
	}
	return grant{slot: l.start(key, c, r, now)}
}

// admit returns a slot for an attempt at a webhook that is in effect since a time, or why there
// is none. It never waits and gives no turns.
func (l *limiter) admit(key receiverKey, since, now time.Time) grant {
	perClient, perReceiver := l.limits(key.client)
	l.mu.Lock()
	defer l.mu.Unlock()
	c, r := l.client(key.client), l.receiver(key)
	c.limit, c.perReceiver = perClient, perReceiver
	if since.After(r.since) {
		r.forgive(now)
		r.since = since
	}
	if resume := r.resume(); now.Before(resume) {
		return grant{reason: ReasonPaused, wait: resume.Sub(now)}
	}
	if !c.hasSlot(r) {
		return grant{reason: ReasonBusy, wait: max(c.expect(r, now), minTurn)}
	}
	return grant{slot: l.start(key, c, r, now)}
}

// restore takes over the failures and the pause of a receiver, unless we know better.
func (l *limiter) restore(key receiverKey, d Receiver) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.receivers[key] != nil || d.Failures == 0 && d.PausedUntil.IsZero() {
		return
	}
	r := &receiver{gauge: newGauge(), since: d.Since, failures: d.Failures, pause: d.Pause}
	if d.Failures > toleratedFailures {
		r.retry = d.PausedUntil
	} else {
		r.asked = d.PausedUntil
	}
	l.idle.Put(key, r)
}

// enter returns a grant, or a waiter in line.
func (l *limiter) enter(key receiverKey, perClient, perReceiver int, now time.Time) (grant, *waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c, r := l.client(key.client), l.receiver(key)
	c.limit, c.perReceiver = perClient, perReceiver
	l.advance(c, now) // the limits may have grown
	switch {
	case now.Before(r.resume()):
		return l.deferral(c, r, now), nil
	case c.hasSlot(r):
		return grant{slot: l.start(key, c, r, now)}, nil
	case r.failures == 0 && c.expect(r, now) < l.patience && c.hasRoom(r):
		w := &waiter{limiter: l, key: key, client: c, receiver: r, granted: make(chan grant, 1)}
		l.activate(key, c, r)
		c.line = append(c.line, w)
		r.waiting++
		return grant{}, w
	default:
		return l.deferral(c, r, now), nil
	}
}

// client returns the client with an identifier. A new one is not kept yet.
func (l *limiter) client(id string) *client {
	if c := l.clients[id]; c != nil {
		return c
	}
	return &client{gauge: newGauge()}
}

// receiver returns the receiver with a key. A new one is not kept yet.
func (l *limiter) receiver(key receiverKey) *receiver {
	if r := l.receivers[key]; r != nil {
		return r
	}
	if r, ok := l.idle.Get(key); ok {
		return r
	}
	return &receiver{gauge: newGauge()}
}

// activate keeps a client and a receiver that are about to have an attempt.
func (l *limiter) activate(key receiverKey, c *client, r *receiver) {
	l.idle.Remove(key)
	l.receivers[key] = r
	l.clients[key.client] = c
}

// settle forgets a client and a receiver without attempts, except for the receiver's
// failures, pause and turns.
func (l *limiter) settle(key receiverKey, c *client, r *receiver, now time.Time) {
	if c.underway == 0 { // then nobody waits for it
		delete(l.clients, key.client)
	}
	if r.underway == 0 && r.waiting == 0 {
		delete(l.receivers, key)
		if r.isKnown(now) {
			l.idle.Put(key, r)
		}
	}
}

// start returns a slot, which must be free.
func (l *limiter) start(key receiverKey, c *client, r *receiver, now time.Time) *slot {
	l.activate(key, c, r)
	c.start(now)
	r.start(now)
	return &slot{limiter: l, key: key, client: c, receiver: r, start: now}
}

// deferral gives a turn to an attempt that doesn't get a slot.
func (l *limiter) deferral(c *client, r *receiver, now time.Time) grant {
	limit, reason := r.limit(c.perReceiver)
	switch resume := r.resume(); {
	case now.Before(resume):
		return grant{reason: ReasonPaused, wait: r.nextTurn(now, resume, limit, l.maxPause)}
	case r.underway < limit && c.underway >= c.limit:
		return grant{reason: ReasonBusy, wait: c.nextTurn(now, now, c.limit, l.maxPause)}
	default:
		return grant{reason: reason, wait: r.nextTurn(now, now, limit, l.maxPause)}
	}
}

// release ends the attempt, and reports whether it ended a pause of the receiver. It must be
// called exactly once.
func (s *slot) release(now time.Time, v verdict) (recovered bool) {
	l, c, r := s.limiter, s.client, s.receiver
	l.mu.Lock()
	defer l.mu.Unlock()
	c.underway--
	r.underway--
	if v.effect != effectNone {
		limit, _ := r.limit(c.perReceiver)
		r.respond(s.start, now, limit)
		c.respond(s.start, now, c.limit)
	}
	recovered = r.judge(v, s.start, now, l.maxPause)
	if v.effect == effectFailure {
		l.dismiss(c, r, now)
	}
	l.advance(c, now)
	l.settle(s.key, c, r, now)
	return recovered
}

// snapshot returns the receivers with attempts, failures or a pause.
func (l *limiter) snapshot(now time.Time) []Receiver {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]Receiver, 0, len(l.receivers)+l.idle.Len())
	for key, r := range l.receivers {
		all = append(all, r.describe(key, now))
	}
	for key, r := range l.idle.All() {
		if r.isUnwell(now) {
			all = append(all, r.describe(key, now))
		}
	}
	return all
}

// resume forgets the failures and the pause of a receiver.
func (l *limiter) resume(key receiverKey, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.idle.Remove(key)
	if r := l.receivers[key]; r != nil {
		r.forgive(now)
	}
}
