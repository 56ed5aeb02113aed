package deliver

import (
	"sync"
	"time"

	"example.com/go-webhookcfg/internal/lru"
)

const (
	toleratedFailures = 4 // in a row; the next one pauses the receiver
	firstPause        = 5 * time.Second

	// assumedDuration is that of an attempt at a receiver that has not responded yet.
	assumedDuration = 20 * time.Millisecond

	// minTurn and maxTurn bound the time from one turn to the next. By maxTurn, the
	// messages that wait for a receiver come back twenty times a second in all, however
	// many there are and however long it hangs. Once it responds, they are sent at that
	// rate or a higher one.
	minTurn = 100 * time.Microsecond
	maxTurn = 50 * time.Millisecond

	// maxIdle is the number of receivers without attempts under way whose failures
	// and pauses are remembered. The least recently used ones are forgotten, which costs
	// a receiver that fails five more attempts.
	maxIdle = 10_000
)

// limiter keeps a client, and a receiver, from occupying all workers of a queue: it bounds
// the attempts under way per client and per receiver of a client, and pauses receivers
// that fail. It never waits: an attempt gets a slot now or is deferred. It is safe for
// concurrent use.
type limiter struct {
	perClient   int
	perReceiver int
	maxPause    time.Duration

	mu        sync.Mutex
	clients   map[string]*gauge                // with attempts under way
	receivers map[receiverKey]*receiver        // with attempts under way
	idle      *lru.Map[receiverKey, *receiver] // without, but with failures or a pause
}

// receiverKey is a host and port as one client uses it. Clients share no state: one that
// knows the host of another must not be able to have it paused.
type receiverKey struct{ client, hostport string }

// newLimiter returns a limiter. All arguments must be positive.
func newLimiter(perClient, perReceiver int, maxPause time.Duration) *limiter {
	return &limiter{
		perClient:   perClient,
		perReceiver: perReceiver,
		maxPause:    maxPause,
		clients:     make(map[string]*gauge),
		receivers:   make(map[receiverKey]*receiver),
		idle:        lru.New[receiverKey, *receiver](maxIdle),
	}
}

// slot permits one attempt, until its release.
type slot struct {
	limiter  *limiter
	key      receiverKey
	client   *gauge
	receiver *receiver
	start    time.Time
}

// verdict is what an attempt showed about its receiver.
type verdict struct {
	effect effect
	pause  time.Duration // the receiver asked for; zero: none
}

type effect uint8

const (
	effectNone effect = iota // the attempt ended for a reason of the sender's
	effectSuccess
	effectFailure
)

// acquire returns a slot for an attempt at a host and port. Without a free one it returns
// nil, the reason and the time until the next turn. Turns follow each other at the pace at
// which slots become free, so that the messages that wait do not all come back at once. A
// turn reserves no slot.
func (l *limiter) acquire(client, hostport string, now time.Time) (*slot, Reason, time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := receiverKey{client, hostport}
	r, active := l.receivers[key]
	if !active {
		r, _ = l.idle.Get(key)
	}
	if r != nil {
		limit, reason := l.limit(r)
		if resume := r.resume(); now.Before(resume) {
			return nil, ReasonPaused, r.wait(now, resume, limit, l.maxPause)
		}
		if r.underway >= limit {
			return nil, reason, r.wait(now, now, limit, l.maxPause)
		}
	}
	c := l.clients[client]
	if c == nil {
		c = &gauge{average: assumedDuration}
	}
	if c.underway >= l.perClient {
		return nil, ReasonBusy, c.wait(now, now, l.perClient, l.maxPause)
	}
	if r == nil {
		r = &receiver{gauge: gauge{average: assumedDuration}}
	}
	if !active {
		l.idle.Remove(key)
		l.receivers[key] = r
	}
	l.clients[client] = c
	c.start(now)
	r.start(now)
	return &slot{limiter: l, key: key, client: c, receiver: r, start: now}, "", 0
}

// limit returns how many attempts at a receiver may be under way, and why not more.
func (l *limiter) limit(r *receiver) (int, Reason) {
	if r.failures > toleratedFailures {
		return 1, ReasonPaused
	}
	return l.perReceiver, ReasonBusy
}

// release ends the attempt. It must be called exactly once.
func (s *slot) release(now time.Time, v verdict) {
	l, r := s.limiter, s.receiver
	l.mu.Lock()
	defer l.mu.Unlock()
	s.client.underway--
	r.underway--
	if v.effect != effectNone {
		limit, _ := l.limit(r)
		r.respond(s.start, now, limit)
		s.client.respond(s.start, now, l.perClient)
	}
	switch v.effect {
	case effectSuccess:
		r.failures, r.pause, r.retry = 0, 0, time.Time{}
	case effectFailure:
		r.failures++
		// One that was under way when the pause was imposed does not prolong it.
		if r.failures > toleratedFailures && !s.start.Before(r.retry) {
			r.pause = min(max(2*r.pause, firstPause), l.maxPause)
			r.retry = now.Add(r.pause)
		}
	}
	if asked := now.Add(min(v.pause, l.maxPause)); v.pause > 0 && asked.After(r.asked) {
		r.asked = asked
	}
	if s.client.underway == 0 {
		delete(l.clients, s.key.client)
	}
	if r.underway == 0 {
		delete(l.receivers, s.key)
		if r.failures > 0 || r.asked.After(now) {
			l.idle.Put(s.key, r)
		}
	}
}

// gauge counts attempts under way and gives turns to those that are deferred.
type gauge struct {
	underway int
	average  time.Duration // of an attempt; the last ones weigh most
	quiet    time.Time     // since when there was no response, though attempts are under way
	turn     time.Time     // the last one that was given
}

func (g *gauge) start(now time.Time) {
	if g.underway == 0 {
		g.quiet = now
	}
	g.underway++
}

// wait gives the next turn, from resume on, and returns the time until then.
func (g *gauge) wait(now, resume time.Time, limit int, maxWait time.Duration) time.Duration {
	pace := g.pace(now, limit)
	if g.turn.Before(resume) || g.turn.Sub(resume) > maxWait-pace {
		g.turn = resume
	}
	g.turn = g.turn.Add(pace)
	return g.turn.Sub(now)
}

// pace returns the time from one free slot to the next. The average alone does not suffice:
// it does not change while the receiver hangs.
func (g *gauge) pace(now time.Time, limit int) time.Duration {
	pace := max(g.average, now.Sub(g.quiet)) / time.Duration(limit)
	return min(max(pace, minTurn), maxTurn)
}

// respond records a response, and moves the last turn to where it would be at the new pace.
func (g *gauge) respond(start, now time.Time, limit int) {
	before := g.pace(now, limit)
	g.average += (now.Sub(start) - g.average) / 4
	g.quiet = now
	if ahead := g.turn.Sub(now); ahead > 0 {
		g.turn = now.Add(time.Duration(float64(ahead) * float64(g.pace(now, limit)) / float64(before)))
	}
}

// receiver is a gauge that also counts failures.
type receiver struct {
	gauge
	failures int           // in a row
	pause    time.Duration // the last one after failures
	retry    time.Time     // its end
	asked    time.Time     // end of the pause that the receiver asked for
}

// resume returns the end of the pause. A success ends only the one after failures.
func (r *receiver) resume() time.Time {
	if r.asked.After(r.retry) {
		return r.asked
	}
	return r.retry
}
