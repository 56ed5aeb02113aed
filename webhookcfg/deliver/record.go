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
	// Stopped is true if nothing is sent until the webhook is set again, except for tests.
	Stopped bool
	// LastSuccess is when the last attempt that succeeded started; zero if none did.
	LastSuccess time.Time
	// LastFailure is when the last attempt that failed started; zero if none did.
	LastFailure time.Time
	// FirstFailure is when the first attempt in the present series of failures started, with
	// no success in between; zero if there is no such series.
	FirstFailure time.Time
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
