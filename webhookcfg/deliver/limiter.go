package deliver

import (
	"errors"
	"hash/maphash"
	"math/rand/v2"
	"sync"
	"time"

	"example.com/go-webhookcfg/internal/lru"
	"example.com/go-webhookcfg/internal/ratelimit"
	"example.com/go-webhookcfg/webhookcfg/deliver/internal/pause"
)

const (
	defaultPerClient   = 16
	defaultPerReceiver = 4

	// maxIdle is how many receivers without attempts we remember, for their failures and
	// pauses. Beyond that we forget one of the client that has the most. If that receiver
	// fails, it costs five more attempts.
	maxIdle = 10_000

	// Messages that get no slot come back after minWait or more, so that a fast receiver's
	// backlog doesn't keep the queue busy, and not all at once. The last one that waits for the
	// end of a pause comes at most maxSpread after it.
	minWait   = 100 * time.Millisecond
	maxSpread = time.Minute
)

// limiter keeps a client or a receiver from taking all workers of a queue. It bounds the
// attempts under way, and defers those for paused receivers. It never waits. It is safe for
// concurrent use.
type limiter struct {
	limits   func(client string) (perClient, perReceiver int)
	maxPause time.Duration

	mu        sync.Mutex
	clients   map[string]*slots                // with attempts under way
	receivers map[receiverKey]*receiver        // with attempts under way
	idle      *lru.Map[receiverKey, *receiver] // without, but with failures or a pause
	tested    *ratelimit.Limiter[receiverKey]
	testers   *ratelimit.Limiter[string] // clients
}

// newLimiter returns a limiter with the limits of complete options.
func newLimiter(o *Options) *limiter {
	seed := maphash.MakeSeed()
	client := func(k receiverKey) uint64 { return maphash.String(seed, k.client) }
	return &limiter{
		limits:    o.limits,
		maxPause:  o.MaxPause,
		clients:   make(map[string]*slots),
		receivers: make(map[receiverKey]*receiver),
		idle:      lru.NewShared[receiverKey, *receiver](maxIdle, client),
		tested:    ratelimit.NewShared(1, testInterval, maxTested, client),
		testers:   ratelimit.New[string](maxTests, time.Second, maxTested),
	}
}

// slots are those of a client or a receiver.
type slots struct {
	taken   int
	average time.Duration // that one is taken; zero: unknown
	freed   time.Time     // when one last became free, or the first one was taken
}

func (s *slots) take(now time.Time) {
	if s.taken == 0 {
		s.freed = now
	}
	s.taken++
}

func (s *slots) free(start, now time.Time) {
	s.taken--
	s.average += (now.Sub(start) - s.average) / 8
	s.freed = now
}

// wait returns roughly how long it takes until a slot is free. The average alone isn't enough,
// because it doesn't change while the receiver hangs.
func (s *slots) wait(now time.Time) time.Duration {
	return max(s.average, now.Sub(s.freed)) / time.Duration(max(s.taken, 1))
}

// slot permits one attempt, until its release.
type slot struct {
	limiter  *limiter
	key      receiverKey
	client   *slots
	receiver *receiver
	start    time.Time
}

// acquire returns a slot for an attempt at a webhook that is in effect since a time. If it's
// nil, the result says why, and its Wait is the rest of the pause, or roughly how long it takes
// until a slot is free. A test gets a slot even at a receiver that is paused after failures.
func (l *limiter) acquire(key receiverKey, since, now time.Time, isTest bool) (*slot, Result) {
	perClient, perReceiver := l.limits(key.client)
	l.mu.Lock()
	defer l.mu.Unlock()
	c, r := l.client(key.client), l.receiver(key)
	r.renew(since)
	end := r.End()
	if isTest {
		end = r.Asked
		if wait := max(l.tested.Wait(key, now), l.testers.Wait(key.client, now)); wait > 0 {
			return nil, deferred(ReasonBusy, wait, errTested)
		}
	}
	switch {
	case now.Before(end):
		return nil, deferred(ReasonPaused, end.Sub(now), errPaused)
	case r.taken >= r.limit(perReceiver):
		return nil, deferred(ReasonBusy, r.wait(now), errBusy)
	case c.taken >= perClient:
		return nil, deferred(ReasonBusy, c.wait(now), errBusy)
	}
	if isTest {
		l.tested.Take(key, now)
		l.testers.Take(key.client, now)
	}
	l.idle.Remove(key)
	l.clients[key.client], l.receivers[key] = c, r
	c.take(now)
	r.take(now)
	return &slot{limiter: l, key: key, client: c, receiver: r, start: now}, Result{}
}

var (
	errBusy   = errors.New("deliver: as many attempts as allowed are under way")
	errPaused = errors.New("deliver: receiver is paused")
)

// release ends the attempt. It must be called exactly once.
func (s *slot) release(now time.Time, v verdict) {
	l, c, r := s.limiter, s.client, s.receiver
	l.mu.Lock()
	defer l.mu.Unlock()
	c.free(s.start, now)
	r.free(s.start, now)
	r.judge(v, s.start, now, l.maxPause)
	if c.taken == 0 {
		delete(l.clients, s.key.client)
	}
	if r.taken == 0 {
		delete(l.receivers, s.key)
		if r.IsUnwell(now) {
			l.idle.Put(s.key, r)
		}
	}
}

// client returns the slots of a client. New ones are not kept yet.
func (l *limiter) client(id string) *slots {
	if c := l.clients[id]; c != nil {
		return c
	}
	return new(slots)
}

// receiver returns the receiver with a key. A new one is not kept yet.
func (l *limiter) receiver(key receiverKey) *receiver {
	if r := l.receivers[key]; r != nil {
		return r
	}
	if r, ok := l.idle.Get(key); ok {
		return r
	}
	return new(receiver)
}

// stagger returns a random wait from the given one to twice that, so that messages that were
// deferred together don't come back together.
func stagger(wait time.Duration) time.Duration {
	wait = max(wait, minWait)
	return wait + rand.N(min(wait, maxSpread))
}

// restore takes over the failures and the pause of a receiver, unless we know better.
func (l *limiter) restore(key receiverKey, d Receiver) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.receivers[key] != nil || d.Failures == 0 && d.PausedUntil.IsZero() {
		return
	}
	r := &receiver{State: pause.State{Failures: d.Failures, Length: d.Pause}, since: d.Since}
	if r.IsFailing() {
		r.Until = d.PausedUntil
	} else {
		r.Asked = d.PausedUntil
	}
	l.idle.Put(key, r)
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
		if r.IsUnwell(now) {
			all = append(all, r.describe(key, now))
		}
	}
	return all
}

// resume forgets the failures and the pause of a receiver.
func (l *limiter) resume(key receiverKey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.idle.Remove(key)
	if r := l.receivers[key]; r != nil {
		r.State = pause.State{}
	}
}
