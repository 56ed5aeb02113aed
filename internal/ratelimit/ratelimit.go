// Package ratelimit provides rate limiters per key with bounded memory.
package ratelimit

import (
	"time"

	"example.com/go-webhookcfg/internal/lru"
)

// Limiter holds a token bucket for each key. It implements the generic cell rate
// algorithm: the instant at which a bucket is full again is its whole state. An unknown
// key has a full bucket. It is not safe for concurrent use. Make one with [New].
type Limiter[K comparable] struct {
	burst int
	every time.Duration
	full  *lru.Map[K, time.Time]
}

// New returns a limiter whose buckets hold burst tokens and gain one per interval every.
// Both must be positive and their product a valid [time.Duration]. Of more than maxKeys
// keys, the least recently used are forgotten: their buckets are full again.
func New[K comparable](burst int, every time.Duration, maxKeys int) *Limiter[K] {
	return &Limiter[K]{burst: burst, every: every, full: lru.New[K, time.Time](maxKeys)}
}

// NewShared is like New, but forgets keys of the owner with the most: see [lru.NewShared].
func NewShared[K comparable](burst int, every time.Duration, maxKeys int, owner func(K) uint64) *Limiter[K] {
	return &Limiter[K]{burst: burst, every: every, full: lru.NewShared[K, time.Time](maxKeys, owner)}
}

// Len returns the number of keys whose state is held.
func (l *Limiter[K]) Len() int { return l.full.Len() }

// Wait returns the time until the key has a token; zero or less if it has one now.
func (l *Limiter[K]) Wait(key K, now time.Time) time.Duration {
	full, ok := l.full.Get(key)
	if !ok {
		return 0
	}
	return full.Sub(now) - time.Duration(l.burst-1)*l.every
}

// Take takes a token. The key must have one: see [Limiter.Wait].
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

// Window admits a number of events per key within any period, however they are
// distributed; a [Limiter] of the same burst and rate admits almost twice as many within
// the first period. It holds the times of the last events. It is not safe for concurrent
// use. Make one with [NewWindow].
type Window[K comparable] struct {
	limit  int
	period time.Duration
	epoch  time.Time
	last   *lru.Map[K, *eventTimes]
}

// eventTimes holds at most limit instants since the epoch, as a ring once it is full.
type eventTimes struct {
	at     []time.Duration
	oldest int // index into at if that is full
}

// NewWindow returns a window that admits limit events per period. Both must be positive.
// Of more than maxKeys keys, the least recently used are forgotten: they have had no
// event.
func NewWindow[K comparable](limit int, period time.Duration, maxKeys int) *Window[K] {
	return &Window[K]{limit: limit, period: period, epoch: time.Now(), last: lru.New[K, *eventTimes](maxKeys)}
}

// Wait returns the time until the key is admitted; zero or less if it is now.
func (w *Window[K]) Wait(key K, now time.Time) time.Duration {
	times, ok := w.last.Get(key)
	if !ok || len(times.at) < w.limit {
		return 0
	}
	return times.at[times.oldest] + w.period - now.Sub(w.epoch)
}

// Take records an event. The key must be admitted: see [Window.Wait].
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
