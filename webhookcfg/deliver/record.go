package deliver

import (
	"time"

	"example.com/go-webhookcfg/webhookcfg"
)

// deliveryOf returns what a result, of a Send that ended at a time, says of its webhook; the
// zero Delivery if it says nothing.
func deliveryOf(r Result, at time.Time) webhookcfg.Delivery {
	d := webhookcfg.Delivery{Since: r.Webhook.Since, State: webhookcfg.DeliveryFailing, LastFailure: at, FirstFailure: at}
	switch {
	case r.Outcome == Delivered:
		return webhookcfg.Delivery{Since: r.Webhook.Since, State: webhookcfg.DeliveryOK, LastSuccess: at}
	case r.Reason == ReasonGone:
		d.Reason = webhookcfg.ReasonGone
		if mayStop(r, at) {
			d.State = webhookcfg.DeliveryStopped
		}
	case r.Reason == ReasonPolicy:
		d.State, d.Reason = webhookcfg.DeliveryStopped, webhookcfg.ReasonRefused
		d.FirstFailure = time.Time{} // nothing was attempted
	case r.Outcome == Failed:
		d.Reason = deliveryReason(r.Reason)
	default:
		return webhookcfg.Delivery{}
	}
	return d
}

// deliveryReason returns the word for a reason in a read. Those without a response share one,
// as in the response to a set: the difference would disclose what listens where.
func deliveryReason(r Reason) webhookcfg.DeliveryReason {
	switch r {
	case ReasonRedirect:
		return webhookcfg.ReasonRedirect
	case ReasonThrottled:
		return webhookcfg.ReasonThrottled
	case ReasonStatus:
		return webhookcfg.ReasonStatus
	default:
		return webhookcfg.ReasonUnreachable
	}
}

// mayStop reports whether a result may stop its webhook: only if the second in which that was
// set was over when Send was called. Otherwise the client may have set it again in the same
// second, after Send resolved it, and the stop would apply to what the client set last.
func mayStop(r Result, at time.Time) bool {
	since, start := r.Webhook.Since, at.Add(-r.Duration)
	return !since.IsZero() && since.Unix() < start.Unix()
}

// isStop reports whether nothing is to be sent. A refusal of the policy is not a stop, even
// if it is shown as one: the policy itself decides at every attempt.
func isStop(d webhookcfg.Delivery) bool {
	return d.State == webhookcfg.DeliveryStopped && d.Reason != webhookcfg.ReasonRefused
}

// isExpired reports whether all deliveries failed for a time.
func isExpired(d webhookcfg.Delivery, stopAfter time.Duration) bool {
	return d.State == webhookcfg.DeliveryFailing && d.LastFailure.Sub(d.FirstFailure) >= stopAfter
}

// merge returns what two records of one webhook say together. Results arrive late, and the
// records of other processes at any time, so the later one has the last word, whichever is
// known first, and b among equals. But only a success ends a stop: a process that does not
// know of the stop may fail later. Times are compared in whole seconds, as stores keep them.
func merge(a, b webhookcfg.Delivery, maxSilence time.Duration) webhookcfg.Delivery {
	switch {
	case a.State == webhookcfg.DeliveryUnknown:
		return b
	case b.State == webhookcfg.DeliveryUnknown:
		return a
	case isLater(latest(a.LastSuccess, a.LastFailure), latest(b.LastSuccess, b.LastFailure)):
		a, b = b, a
	}
	success, failure := latest(a.LastSuccess, b.LastSuccess), latest(a.LastFailure, b.LastFailure)
	if isStop(a) && !isStop(b) && !isLater(success, a.LastFailure) {
		b, failure = a, a.LastFailure
	}
	b.LastSuccess, b.LastFailure = success, failure
	if b.State == webhookcfg.DeliveryFailing {
		b.FirstFailure = firstFailure(a, b, maxSilence)
	}
	return b
}

// isNews reports whether a store that has the record b lacks something of a. Another state
// comes with another reason or a later time.
func isNews(a, b webhookcfg.Delivery) bool {
	return a.State != webhookcfg.DeliveryUnknown &&
		(a.Reason != b.Reason || !sameSecond(a.Since, b.Since) ||
			isLater(a.LastSuccess, b.LastSuccess) || isLater(a.LastFailure, b.LastFailure))
}

// firstFailure returns the first failure of the series with which b ends, if a is the record
// before.
func firstFailure(a, b webhookcfg.Delivery, maxSilence time.Duration) time.Time {
	first := b.FirstFailure
	if isLater(b.LastSuccess, first) {
		first = b.LastFailure // it succeeded in between
	}
	isSeries := !a.FirstFailure.IsZero() && !isLater(b.LastSuccess, a.FirstFailure) && first.Sub(a.LastFailure) <= maxSilence
	if isSeries && isLater(first, a.FirstFailure) {
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

// isLater reports whether a is in a later second than b.
func isLater(a, b time.Time) bool { return a.Unix() > b.Unix() }

func sameSecond(a, b time.Time) bool { return a.Unix() == b.Unix() }
