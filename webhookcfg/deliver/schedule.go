package deliver

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// Schedule lists the delays after the first failure, the second, and so on. With n delays, a
// message gets n+1 attempts. A negative delay counts as zero.
type Schedule []time.Duration

// StandardSchedule returns the schedule of the Standard Webhooks specification: ten attempts
// over 76 hours, with delays growing from 5 seconds to a day.
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

// Decision is what your queue does with a message after an attempt.
type Decision struct {
	// Action is what to do with the message.
	Action Action

	// Delay is how long to wait before a Retry. Otherwise it's zero.
	Delay time.Duration

	// Attempt is the number of the next attempt for a Retry. A deferred attempt doesn't
	// count, so its number is used again. Otherwise it's zero.
	Attempt int
}

// Action is what to do with a message.
type Action uint8

// Actions. The zero Action is invalid.
const (
	// Done: remove the message. It was delivered, or nobody wants it: no webhook is in
	// effect, it's stopped, or its receiver responded with status 410.
	Done Action = iota + 1
	// Retry: keep the message, and send it again after a delay.
	Retry
	// SetAside: remove the message from the queue, but keep it for as long as you want to
	// be able to replay it. The schedule is used up, the policy refuses the URL, the message is
	// invalid, or its receiver responded with status 413.
	SetAside
)

var actions = [...]string{Done: "done", Retry: "retry", SetAside: "set aside"}

// String returns "done", "retry" or "set aside".
func (a Action) String() string {
	if a == 0 || int(a) >= len(actions) {
		return fmt.Sprintf("Action(%d)", uint8(a))
	}
	return actions[a]
}

// Next returns what to do with a message after an attempt. The number of the first attempt is
// 1.
//
//	outcome        what happened                                 decision
//	Delivered      status 200 to 299                             done
//	Failed         another status, no response, no connection,   retry, until the schedule is
//	               or an address that the policy denies          used up; then set aside
//	Deferred       not an attempt: a limit was reached, the      retry after Result.Wait
//	               webhook is paused, your store or your keys
//	               were unavailable, or you cancelled ctx
//	Undeliverable  no webhook is in effect, it was stopped, or   done
//	               status 410
//	Undeliverable  the policy refuses the URL, the message is    set aside
//	               invalid or too large, or status 413
//
// Only the status counts, and redirects aren't followed.
//
// After a failure the delay is the schedule's, give or take a fifth at random, so that
// messages that failed together don't come back together. It's never less than r.Wait. After
// the last attempt, the message is set aside.
//
// Deferred attempts don't count. The message is due again after r.Wait, under the same
// attempt number. An invalid Outcome counts as a failure.
//
// If you want to keep the messages of stopped webhooks, look at r.Reason before you call
// Next.
func (s Schedule) Next(attempt int, r Result) Decision {
	attempt = max(attempt, 1)
	switch {
	case r.Outcome == Delivered, r.Reason == ReasonNoWebhook, r.Reason == ReasonOff, r.Reason == ReasonStopped, r.Reason == ReasonGone:
		return Decision{Action: Done}
	case r.Outcome == Deferred:
		return Decision{Action: Retry, Delay: max(0, r.Wait), Attempt: attempt}
	case r.Outcome == Undeliverable, attempt > len(s):
		return Decision{Action: SetAside}
	}
	return Decision{Action: Retry, Delay: max(spread(s[attempt-1]), r.Wait), Attempt: attempt + 1}
}

// spread returns a random duration from four to six fifths of d.
func spread(d time.Duration) time.Duration {
	d = max(0, d)
	fifth := d / 5
	d -= fifth
	return d + min(rand.N(2*fifth+1), math.MaxInt64-d)
}
