package deliver

import (
	"iter"
	"time"
)

const (
	toleratedFailures = 4 // in a row; the next one pauses the receiver
	firstPause        = 5 * time.Second
)

// Receiver is a host and port as one client uses it: clients share no state. See
// [Sender.Receivers].
type Receiver struct {
	// Client is the identifier of the client.
	Client string

	// HostPort is the host, in lower case, and the port, even if the URLs have none.
	HostPort string

	// UnderWay is the number of attempts under way.
	UnderWay int

	// Waiting is the number of calls of Send that wait for a slot.
	Waiting int

	// Failures is the number of failures in a row.
	Failures int

	// PausedUntil is the end of the pause. It's zero if the receiver isn't paused.
	PausedUntil time.Time

	// Pause is the length of the last pause after failures. The next one is twice as long.
	Pause time.Duration

	// Limit is how many attempts may be under way: Options.PerReceiver, the client's own
	// limit, or one after failures in a row. Only [Sender.Receiver] sets it.
	Limit int

	// Since is the latest [webhookcfg.Webhook.Since] that was sent to. A webhook that was set
	// later ends the pause. It's zero if only [Sender.Send] was called.
	Since time.Time
}

// Receivers iterates over the receivers that have attempts under way or waiting, are paused,
// or failed last time. It takes a snapshot when the iteration starts, in no particular order.
// The sender remembers up to 10,000 receivers without attempts.
func (s *Sender) Receivers() iter.Seq[Receiver] {
	return func(yield func(Receiver) bool) {
		for _, r := range s.limiter.snapshot(time.Now()) {
			if !yield(r) {
				return
			}
		}
	}
}

// Resume ends the pause of a receiver and forgets its failures. Take the arguments from a
// [Receiver]. For an unknown receiver, Resume does nothing. Messages in your queue stay there
// until they are due, so make them due if they shouldn't wait.
func (s *Sender) Resume(client, hostport string) {
	s.limiter.resume(receiverKey{client, hostport}, time.Now())
}

// Receiver returns what the sender knows about a receiver of a client. If it knows nothing,
// only Client and HostPort are set.
func (s *Sender) Receiver(client, hostport string) Receiver {
	key, now := receiverKey{client, hostport}, time.Now()
	_, perReceiver := s.options.limits(client)
	s.limiter.mu.Lock()
	defer s.limiter.mu.Unlock()
	r := s.limiter.receiver(key)
	d := r.describe(key, now)
	d.Limit, _ = r.limit(perReceiver)
	return d
}

// Restore takes over the failures and the pause of a receiver, as another process knew them. It
// does nothing if the receiver has attempts under way here.
func (s *Sender) Restore(r Receiver) {
	s.limiter.restore(receiverKey{r.Client, r.HostPort}, r)
}

// receiverKey is a host and port as one client uses it. Clients share no state, because
// otherwise a client could get another one's receiver paused.
type receiverKey struct{ client, hostport string }

// receiver is a gauge that also counts failures.
type receiver struct {
	gauge
	waiting  int           // in the line of the client
	failures int           // in a row
	pause    time.Duration // the last one after failures
	retry    time.Time     // its end
	asked    time.Time     // end of the pause that the receiver asked for
	since    time.Time     // when the latest webhook that was sent to was set
}

// verdict is an attempt's result for its receiver.
type verdict struct {
	effect effect
	pause  time.Duration // the receiver asked for; zero: none
}

type effect uint8

const (
	effectNone effect = iota // the attempt ended for a reason of the sender's
	effectSuccess
	effectFailure
)

// resume returns the end of the pause. A success ends only the one after failures.
func (r *receiver) resume() time.Time {
	if r.asked.After(r.retry) {
		return r.asked
	}
	return r.retry
}

// limit returns how many attempts may be under way, and the reason for the limit.
func (r *receiver) limit(perReceiver int) (int, Reason) {
	if r.failures > toleratedFailures {
		return 1, ReasonPaused
	}
	return perReceiver, ReasonBusy
}

// judge records the verdict of an attempt that started at the given time, and reports whether
// it ended a pause.
func (r *receiver) judge(v verdict, start, now time.Time, maxPause time.Duration) (recovered bool) {
	if asked := now.Add(min(v.pause, maxPause)); v.pause > 0 && asked.After(r.asked) {
		r.asked = asked
	}
	switch v.effect {
	case effectSuccess:
		wasPaused := !r.resume().IsZero()
		r.failures, r.pause, r.retry = 0, 0, time.Time{}
		if r.asked.After(now) {
			break
		}
		r.asked = time.Time{}
		if wasPaused {
			r.renew(now)
			return true
		}
	case effectFailure:
		r.failures++
		// An attempt from before the pause doesn't prolong it.
		if r.failures > toleratedFailures && !start.Before(r.retry) {
			r.pause = min(max(2*r.pause, firstPause), maxPause)
			r.retry = now.Add(r.pause)
		}
	}
	return false
}

// forgive forgets the failures and the pause.
func (r *receiver) forgive(now time.Time) {
	r.failures, r.pause, r.retry, r.asked = 0, 0, time.Time{}, time.Time{}
	r.renew(now)
}

// renew forgets how long attempts took, and the turns given out while the receiver didn't
// respond.
func (r *receiver) renew(now time.Time) {
	underway := r.underway
	r.gauge = newGauge()
	r.underway, r.quiet = underway, now
}

func (r *receiver) describe(key receiverKey, now time.Time) Receiver {
	d := Receiver{Client: key.client, HostPort: key.hostport, UnderWay: r.underway, Waiting: r.waiting, Failures: r.failures, Pause: r.pause, Since: r.since}
	if resume := r.resume(); resume.After(now) {
		d.PausedUntil = resume
	}
	return d
}

// isUnwell reports whether the last attempt failed, or the receiver is paused.
func (r *receiver) isUnwell(now time.Time) bool { return r.failures > 0 || r.resume().After(now) }

// isKnown reports whether a receiver without attempts is worth remembering. If we forgot a
// turn, its waiting messages would come back at once.
func (r *receiver) isKnown(now time.Time) bool { return r.isUnwell(now) || r.turn.After(now) }
