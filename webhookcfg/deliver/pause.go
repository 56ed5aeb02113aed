package deliver

import (
	"time"
)

const (
	toleratedFailures = 4 // in a row; the next one pauses the receiver
	firstPause        = 5 * time.Second
	defaultMaxPause   = time.Hour
)

// pause is what a receiver's responses say about when to call it again: after five failures in
// a row not for five seconds, and then for twice as long after each further failure.
type pause struct {
	failures int           // in a row
	length   time.Duration // the last one after failures
	retry    time.Time     // its end
	asked    time.Time     // end of the pause that the receiver asked for
	since    time.Time     // when the latest webhook that was sent to was set
}

// verdict is an attempt's result for its receiver.
type verdict struct {
	effect effect
	pause  time.Duration // the receiver asked for, up to Options.MaxPause; zero: none
}

type effect uint8

const (
	effectNone effect = iota // the attempt ended for a reason of the sender's
	effectSuccess
	effectFailure
)

// end returns the end of the pause. A success ends only the one after failures.
func (p *pause) end() time.Time {
	if p.asked.After(p.retry) {
		return p.asked
	}
	return p.retry
}

// limit returns how many attempts may be under way: one until a receiver that was paused
// succeeds.
func (p *pause) limit(perReceiver int) int {
	if p.failures > toleratedFailures {
		return 1
	}
	return perReceiver
}

// judge records the verdict of an attempt that started at the given time.
func (p *pause) judge(v verdict, start, now time.Time, maxPause time.Duration) {
	if asked := now.Add(v.pause); v.pause > 0 && asked.After(p.asked) {
		p.asked = asked
	}
	switch v.effect {
	case effectSuccess:
		p.failures, p.length, p.retry = 0, 0, time.Time{}
	case effectFailure:
		p.failures++
		// An attempt from before the pause doesn't prolong it.
		if p.failures > toleratedFailures && !start.Before(p.retry) {
			p.length = min(max(2*p.length, firstPause), maxPause)
			p.retry = now.Add(p.length)
		}
	}
}

// renew forgets the failures and the pause if the webhook was set after the ones that were
// sent to.
func (p *pause) renew(since time.Time) {
	if since.After(p.since) {
		*p = pause{since: since}
	}
}

// isUnwell reports whether the last attempt failed, or the receiver is paused.
func (p *pause) isUnwell(now time.Time) bool { return p.failures > 0 || p.end().After(now) }
