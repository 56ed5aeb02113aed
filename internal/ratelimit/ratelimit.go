// Package ratelimit limits rates for each key, with bounded memory.
package ratelimit

import (
	"time"

	"example.com/go-webhookcfg/internal/lru"
)

// Limiter has a token bucket for each key. It uses the generic cell rate algorithm, so it
// only stores when a bucket is full again. A key that it doesn't know has a full bucket.
// Don't use it concurrently. Make one with [New].
type Limiter[K comparable] struct {
	burst int
	every time.Duration
	full  *lru.Map[K, time.Time]
}

// New returns a limiter. Its buckets hold burst tokens, and gain one per interval every. Both
// must be positive, and their product must be a valid [time.Duration]. Beyond maxKeys keys,
// the least recently used key starts over with a full bucket.
func New[K comparable](burst int, every time.Duration, maxKeys int) *Limiter[K] {
	return &Limiter[K]{burst: burst, every: every, full: lru.New[K, time.Time](maxKeys)}
}

// NewShared is like New, but makes the owner with the most keys forget one. See
// [lru.NewShared].
func NewShared[K comparable](burst int, every time.Duration, maxKeys int, owner func(K) uint64) *Limiter[K] {
	return &Limiter[K]{burst: burst, every: every, full: lru.NewShared[K, time.Time](maxKeys, owner)}
}

// Len returns how many keys the limiter knows.
func (l *Limiter[K]) Len() int { return l.full.Len() }

// Wait returns how long to wait until the key has a token. It's zero or less if the key has
// one now.
func (l *Limiter[K]) Wait(key K, now time.Time) time.Duration {
	full, ok := l.full.Get(key)
	if !ok {
		return 0
	}
	return full.Sub(now) - time.Duration(l.burst-1)*l.every
}

// Take takes a token. Call [Limiter.Wait] first: the key must have one.
func (l *Limiter[K]) Take(key K, now time.Time) {
	full, ok := l.full.Get(key)
	if !ok || full.Before(now) {
		full = now
	}
	l.full.Put(key, full.Add(l.every))
}

// GiveBack undoes a Take.
func (l *Limiter[K]) GiveBack(key K, now time.Time) {
	full, ok := l.full.Get(key)
	if !ok {
		return
	}
	full = full.Add(-l.every)
	if full.After(now) {
		l.full.Put(key, full)
	} else {
		l.full.Remove(key)
	}
}

// Window admits a number of events per key within any period, no matter how they're
// distributed. A [Limiter] with the same burst and rate admits almost twice as many within
// the first period. A window needs more memory, since it stores the times of the last events.
// Don't use it concurrently. Make one with [NewWindow].
type Window[K comparable] struct {
	limit  int
	period time.Duration
	epoch  time.Time
	last   *lru.Map[K, *eventTimes]
}

// eventTimes holds up to limit times since the epoch. Once it's full, it's a ring.
type eventTimes struct {
	at     []time.Duration
	oldest int // index into at, once that is full
}

// NewWindow returns a window that admits limit events per period. Both must be positive.
// Beyond maxKeys keys, the least recently used key starts over, as if it had no events.
func NewWindow[K comparable](limit int, period time.Duration, maxKeys int) *Window[K] {
	return &Window[K]{limit: limit, period: period, epoch: time.Now(), last: lru.New[K, *eventTimes](maxKeys)}
}

// Wait returns how long to wait until the key is admitted. It's zero or less if the key is
// admitted now.
func (w *Window[K]) Wait(key K, now time.Time) time.Duration {
	times, ok := w.last.Get(key)
	if !ok || len(times.at) < w.limit {
		return 0
	}
	return times.at[times.oldest] + w.period - now.Sub(w.epoch)
}

// Take records an event. Call [Window.Wait] first: the key must be admitted.
func (w *Window[K]) Take(key K, now time.Time) {
	times, ok := w.last.Get(key)
	if !ok {
		times = new(eventTimes)
		w.last.Put(key, times)
	}
	if len(times.at) < w.limit {
		times.at = append(times.at, now.Sub(w.epoch))
		return
	}
	times.at[times.oldest] = now.Sub(w.epoch)
	times.oldest = (times.oldest + 1) % w.limit
}
