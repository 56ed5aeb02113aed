package auth

import (
	"errors"
	"math"
	"time"
)

// Rate is how often something may happen: Burst times at once, and then once Every
// so often. The zero Rate stands for a default.
type Rate struct {
	// Burst is how often at once; at least 1.
	Burst int
	// Every is the time after which it may happen once more; more than zero.
	Every time.Duration
}

var errRate = errors.New("auth: a rate needs a Burst and an Every that are more than zero and make less than 292 years")

func (r Rate) or(fallback Rate) (Rate, error) {
	if r == (Rate{}) {
		return fallback, nil
	}
	if r.Burst <= 0 || r.Every <= 0 || int64(r.Burst) > math.MaxInt64/int64(r.Every) {
		return r, errRate
	}
	return r, nil
}

// buckets holds a token bucket for each key, by the generic cell rate algorithm: the
// instant at which a bucket is full again is all that is remembered of it. A key that
// is not remembered has a full bucket. It is not safe for concurrent use.
type buckets[K comparable] struct {
	rate Rate
	full *recent[K, time.Time]
}

func newBuckets[K comparable](rate Rate, limit int) buckets[K] {
	return buckets[K]{rate: rate, full: newRecent[K, time.Time](limit)}
}

// wait returns how long the key must wait for a token; zero or less for not at all.
func (b buckets[K]) wait(key K, now time.Time) time.Duration {
	full, ok := b.full.get(key)
	if !ok {
		return 0
	}
	return full.Sub(now) - time.Duration(b.rate.Burst-1)*b.rate.Every
}

// take takes a token, which must be there.
func (b buckets[K]) take(key K, now time.Time) {
	full, ok := b.full.get(key)
	if !ok || full.Before(now) {
		full = now
	}
	b.full.put(key, full.Add(b.rate.Every))
}

// giveBack undoes take.
func (b buckets[K]) giveBack(key K, now time.Time) {
	full, ok := b.full.get(key)
	if !ok {
		return
	}
	full = full.Add(-b.rate.Every)
	if full.After(now) {
		b.full.put(key, full)
	} else {
		b.full.remove(key)
	}
}
