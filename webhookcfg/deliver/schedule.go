package deliver

import (
	"fmt"
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

// Decision is what your queue does with a message after an attempt.
type Decision struct {
	// Action is one of Done, Retry and SetAside.
	Action Action

	// Delay is the time until the next attempt. It's zero unless Action is Retry.
	Delay time.Duration

	// Attempt is the number of the next attempt: the same as before if this one was
	// deferred, as that doesn't count. It's zero unless Action is Retry.
	Attempt int
}

// Action is the case of a [Decision].
type Action uint8

// Actions. The zero Action is none of them, and invalid.
const (
	// Done: remove the message. It was delivered, or nobody wants it: no webhook is in
	// effect, it's stopped, or its receiver responded with status 410.
	Done Action = iota + 1
	// Retry: keep the message, and send it again after a delay.
	Retry
	// SetAside: remove the message from the queue, but keep it for as long as you want to
	// be able to replay it. The schedule is used up, the policy refuses the URL, or the
	// message is invalid.
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

// Next returns what to do with a message after attempt number attempt, from 1, had the
// result r.
//
// After a failure, the delay is the schedule's, give or take a fifth at random, so that
// messages that failed together don't come back together. It's never less than r.Wait. After
// the last attempt of the schedule, the message is set aside.
//
// A deferred attempt doesn't count, however many there are: the message is due after r.Wait,
// and the next attempt has the same number. An invalid Outcome counts as a failure.
//
// A host that wants to keep the messages of stopped webhooks looks at r.Reason first.
func (s Schedule) Next(attempt int, r Result) Decision {
	attempt = max(attempt, 1)
	switch {
	case r.Outcome == Delivered, r.Reason == ReasonNoWebhook, r.Reason == ReasonStopped, r.Reason == ReasonGone:
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
