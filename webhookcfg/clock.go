package webhookcfg

import (
	"sync/atomic"
	"time"
)

// clock gives changes their times. No two changes get the same time, because records of
// deliveries find their webhook by the time at which it was set.
type clock struct {
	now  func() time.Time
	last atomic.Int64 // in microseconds
}

func newClock(now func() time.Time) *clock {
	c := &clock{now: now}
	c.last.Store(time.Time{}.UnixMicro()) // so no change gets the zero time, which doesn't identify a setting
	return c
}

// next returns the time for a change.
func (c *clock) next() time.Time {
	now := c.now().UnixMicro()
	for {
		last := c.last.Load()
		next := max(now, last+1)
		if c.last.CompareAndSwap(last, next) {
			return time.UnixMicro(next).UTC()
		}
	}
}
