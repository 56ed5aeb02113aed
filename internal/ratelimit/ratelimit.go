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
