package deliver

import (
	"math"
	"math/rand/v2"
	"time"
)

// Schedule has the delays after the first, the second, … failure of a message: with n of
// them, n+1 attempts are made. A negative delay counts as zero.
type Schedule []time.Duration

// StandardSchedule returns the schedule of the Standard Webhooks specification: ten attempts
// within 76 hours, at first after 5 seconds, at last after a day.
func StandardSchedule() Schedule {
	return Schedule{
		5 * time.Second,
		5 * time.Minute,
		30 * time.Minute,
		2 * time.Hour,
		5 * time.Hour,
		10 * time.Hour,
		14 * time.Hour,
		20 * time.Hour,
		24 * time.Hour,
	}
}

// Next reports whether a message stays in the queue after attempt number attempt, from 1,
// had the result r, and the delay until the next one.
//
// After a failure, the delay is that of the schedule, give or take a fifth at random, so
// that messages that failed together do not come back together, and not less than r.Wait.
// After the last attempt of the schedule the message does not stay.
//
// A deferred attempt does not count, however many there are: the message stays for
// r.Wait, and the next attempt has the same number. After any other outcome the message does
// not stay. An invalid Outcome counts as a failure. Since Next takes r.Wait into account, you
// don't have to look at it yourself.
func (s Schedule) Next(attempt int, r Result) (delay time.Duration, again bool) {
	switch r.Outcome {
	case Delivered, Undeliverable:
		return 0, false
	case Deferred:
		return max(0, r.Wait), true
	}
	attempt = max(attempt, 1)
	if attempt > len(s) {
		return 0, false
	}
	return max(spread(s[attempt-1]), r.Wait), true
}

// spread returns a random duration from four to six fifths of d.
func spread(d time.Duration) time.Duration {
	d = max(0, d)
	fifth := d / 5
	d -= fifth
	return d + min(rand.N(2*fifth+1), math.MaxInt64-d)
}
