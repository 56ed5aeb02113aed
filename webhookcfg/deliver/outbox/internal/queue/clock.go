package queue

import (
	"context"
	"math/rand/v2"
	"time"
)

// Wait reports whether the time passed before ctx ended.
func Wait(ctx context.Context, d time.Duration) bool {
	// Timers that are due at once crash the race detector of Go 1.26 in a bubble of testing/synctest, if
	// two goroutines run them at the same time.
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Jitter returns a random duration from d/2 to 3d/2.
func Jitter(d time.Duration) time.Duration { return d/2 + rand.N(d) }

// Micros converts the database's microseconds. Times far away stay so.
func Micros(n int64) time.Duration {
	const most = 1 << 50
	return time.Duration(max(min(n, most), -most)) * time.Microsecond
}
