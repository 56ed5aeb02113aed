package deliver

import (
	"time"

	"example.com/go-webhookcfg/webhookcfg"
)

// Record is what a [Health] knows of the deliveries to one webhook as it was set. The zero
// value means that nothing is known.
type Record struct {
	// Since is [webhookcfg.Webhook.Since] of the webhook. The record says nothing of what
	// the client had set before, nor of what it set later.
	Since time.Time
	// Reason is why the last delivery failed, or why the webhook was stopped; "" if the
	// last delivery succeeded.
	Reason Reason
	// Stopped is true if nothing is sent until the webhook is set again.
	Stopped bool
	// LastSuccess is when the last attempt that succeeded started; zero if none did.
	LastSuccess time.Time
	// LastFailure is when the last attempt that failed started; zero if none did.
	LastFailure time.Time
	// FirstFailure is when the first attempt in the present series of failures started, with
	// no success in between; zero if there is no such series.
	FirstFailure time.Time
}

// newRecord returns what the result of an attempt that started at a time says of its webhook;
// the zero Record if it says nothing. Like every store, it keeps microseconds.
//
// A webhook with the zero Since is never stopped: nothing would tell it from what the client
// sets next.
func newRecord(r Result, at time.Time) Record {
	at = at.Truncate(time.Microsecond)
	failure := Record{Since: r.Webhook.Since, Reason: r.Reason, LastFailure: at, FirstFailure: at}
	switch {
	case r.Outcome == Delivered:
		return Record{Since: r.Webhook.Since, LastSuccess: at}
	case r.Reason == ReasonGone:
		failure.Stopped = !r.Webhook.Since.IsZero()
	case r.Reason == ReasonPolicy:
		failure.FirstFailure = time.Time{} // nothing was attempted
	case r.Outcome != Failed:
		return Record{}
	}
	return failure
}

// status returns what a client may read. A refusal of the policy is shown as a stop, but is
// none: the policy itself decides at every attempt.
func (r Record) status() webhookcfg.DeliveryStatus {
	status := webhookcfg.DeliveryStatus{Reason: r.Reason.Public(), LastSuccess: r.LastSuccess, LastFailure: r.LastFailure}
	switch {
	case !r.isKnown():
		return webhookcfg.DeliveryStatus{}
	case r.Reason == "":
		status.State = "ok"
	case r.isFailing():
		status.State = "failing"
	default:
		status.State = "stopped"
	}
	return status
}

func (r Record) isKnown() bool { return !r.LastSuccess.IsZero() || !r.LastFailure.IsZero() }

// isFailing reports whether the last attempt failed, and others follow.
func (r Record) isFailing() bool { return !r.Stopped && r.Reason != "" && r.Reason != ReasonPolicy }

// isExpired reports whether all deliveries failed for a time, and the webhook can be stopped.
func (r Record) isExpired(stopAfter time.Duration) bool {
	return r.isFailing() && r.LastFailure.Sub(r.FirstFailure) >= stopAfter && !r.Since.IsZero()
}

// merge returns what two records of one webhook say together. Results arrive late, and the
// records of other processes at any time, so the attempt that started later has the last
// word, whichever is known first, and b among equals. But only a success ends a stop: a
// process that does not know of the stop may fail later.
func merge(a, b Record, maxSilence time.Duration) Record {
	switch {
	case !a.isKnown():
		return b
	case !b.isKnown():
		return a
	case latest(a.LastSuccess, a.LastFailure).After(latest(b.LastSuccess, b.LastFailure)):
		a, b = b, a
	}
	success, failure := latest(a.LastSuccess, b.LastSuccess), latest(a.LastFailure, b.LastFailure)
	if a.Stopped && !b.Stopped && !success.After(a.LastFailure) {
		b, failure = a, a.LastFailure
	}
	b.LastSuccess, b.LastFailure = success, failure
	if b.isFailing() {
		b.FirstFailure = firstFailure(a, b, maxSilence)
	}
	return b
}

// isNews reports whether a store that has the record b lacks something of a. A stop comes with
// another reason or a later time.
func isNews(a, b Record) bool {
	return a.isKnown() &&
		(a.Reason != b.Reason || !a.Since.Equal(b.Since) ||
			a.LastSuccess.After(b.LastSuccess) || a.LastFailure.After(b.LastFailure))
}

// firstFailure returns the first failure of the series with which b ends, if a is the record
// before.
func firstFailure(a, b Record, maxSilence time.Duration) time.Time {
	first := b.FirstFailure
	if b.LastSuccess.After(first) {
		first = b.LastFailure // it succeeded in between
	}
	isSeries := !a.FirstFailure.IsZero() && !b.LastSuccess.After(a.FirstFailure) && first.Sub(a.LastFailure) <= maxSilence
	if isSeries && first.After(a.FirstFailure) {
		return a.FirstFailure
	}
	return first
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
