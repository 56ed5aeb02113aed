// Package ratelimit provides a rate limiter per key with bounded memory.
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
