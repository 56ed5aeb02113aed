package deliver

import (
	"time"

	"example.com/go-webhookcfg/webhookcfg"
)

// Record is what a [Health] knows about the deliveries to one webhook since the client set
// it. The zero value means that nothing is known.
type Record struct {
	// Since is [webhookcfg.Webhook.Since] of the webhook. When the client sets another
	// URL, a new record starts.
	Since time.Time
	// Reason is why the last delivery failed or the webhook was stopped, or "" after a
	// success.
	Reason Reason
	// Stopped is true if nothing but tests is sent until the client sets another URL, or the same
	// one again and it works.
	Stopped bool
	// LastSuccess is when the last successful attempt started, or zero.
	LastSuccess time.Time
	// LastFailure is when the last failed attempt started, or zero.
	LastFailure time.Time
	// FirstFailure is when the first of the present failures in a row started, or zero.
	FirstFailure time.Time
}

// status returns the part that a client may read. A URL that the policy refuses is shown as
// stopped, although there's no stop to end: the policy decides again at every attempt.
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

// isFailing reports whether the last attempt failed, but the next notification will be tried.
func (r Record) isFailing() bool { return !r.Stopped && r.Reason != "" && r.Reason != ReasonPolicy }
