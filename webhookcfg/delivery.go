package webhookcfg

import (
	"context"
	"fmt"
	"time"
)

// Deliveries knows how the deliveries to a webhook go, for the read of one entity. It is
// optional; see [Options.Deliveries]. It must be safe for concurrent use and honour its
// context, like a [Store]. Health of package deliver is one.
type Deliveries interface {
	// Delivery returns what is known of the deliveries to hook, the webhook in effect for
	// an entity, whose URL is not zero. The zero Delivery means that nothing is known. An
	// error gives 503.
	Delivery(ctx context.Context, client, entity string, hook Webhook) (Delivery, error)
}

// Delivery is the state of the deliveries to one webhook as it was set: it says nothing of
// what the webhook was before, nor of what it is after it is set again. The zero value means
// that nothing is known.
type Delivery struct {
	// Since is [Webhook.Since] of the webhook that the state belongs to. A read does not
	// show a state whose Since is of another second than that of the webhook in effect.
	Since time.Time
	// State summarizes the deliveries.
	State DeliveryState
	// Reason is why State is DeliveryFailing or DeliveryStopped; zero if it is DeliveryOK.
	Reason DeliveryReason
	// LastSuccess is the time of the last success; zero if there was none.
	LastSuccess time.Time
	// LastFailure is the time of the last failure; zero if there was none.
	LastFailure time.Time
	// FirstFailure is the time of the first failure in the present series of failures, with
	// no success in between; zero if there is no such series. A read does not show it.
	FirstFailure time.Time
}

// DeliveryState summarizes the deliveries to a webhook. Stores may keep the numbers: they do
// not change.
type DeliveryState uint8

// The states.
const (
	// DeliveryUnknown: nothing is known.
	DeliveryUnknown DeliveryState = iota
	// DeliveryOK: the last delivery succeeded.
	DeliveryOK
	// DeliveryFailing: the last delivery failed. It is attempted again.
	DeliveryFailing
	// DeliveryStopped: nothing is delivered until the webhook is set again or, if the
	// reason is ReasonRefused, until the policy allows it.
	DeliveryStopped
)

var deliveryStates = [...]string{DeliveryUnknown: "", DeliveryOK: "ok", DeliveryFailing: "failing", DeliveryStopped: "stopped"}

// String returns "", "ok", "failing" or "stopped", as in the responses.
func (s DeliveryState) String() string {
	if int(s) < len(deliveryStates) {
		return deliveryStates[s]
	}
	return fmt.Sprintf("DeliveryState(%d)", uint8(s))
}

// DeliveryReason is why deliveries fail or were stopped. It is all that a client learns of a
// receiver's responses: a status or a text would make the service a scanner of networks that
// the client cannot reach. The zero value is no reason. Stores may keep the numbers: they do
// not change.
type DeliveryReason uint8

// The reasons.
const (
	// ReasonUnreachable: no connection, no response in time, or a failed TLS handshake.
	ReasonUnreachable DeliveryReason = iota + 1
	// ReasonRedirect: the response was a redirect; none is followed.
	ReasonRedirect
	// ReasonThrottled: the receiver, or what is in front of it, is overloaded at the moment.
	ReasonThrottled
	// ReasonStatus: the response had another status than success.
	ReasonStatus
	// ReasonGone: the response was 410.
	ReasonGone
	// ReasonRefused: the policy of the service, which may have changed since the webhook
	// was set, refuses the URL.
	ReasonRefused
	// ReasonExpired: every delivery failed for too long.
	ReasonExpired
)

var deliveryReasons = [...]string{
	0: "", ReasonUnreachable: "unreachable", ReasonRedirect: "redirect", ReasonThrottled: "throttled",
	ReasonStatus: "status", ReasonGone: "gone", ReasonRefused: "refused", ReasonExpired: "expired",
}

// String returns "" for no reason, "unreachable", "redirect", "throttled", "status", "gone",
// "refused" or "expired", as in the responses.
func (r DeliveryReason) String() string {
	if int(r) < len(deliveryReasons) {
		return deliveryReasons[r]
	}
	return fmt.Sprintf("DeliveryReason(%d)", uint8(r))
}

// delivery returns how the deliveries to hook, the webhook in effect, go; nil if nothing is
// known.
func (o *operation) delivery(ctx context.Context, entity string, hook Webhook) (*deliveryJSON, *apiError) {
	if o.h.options.Deliveries == nil || hook.URL.IsZero() {
		return nil, nil
	}
	o.url = hook.URL // which an error or a panic may quote
	d, err := o.h.options.Deliveries.Delivery(ctx, o.event.Client, entity, hook)
	switch {
	case err != nil:
		return nil, unavailable(fmt.Errorf("delivery: %w", err))
	case int(d.State) >= len(deliveryStates) || int(d.Reason) >= len(deliveryReasons):
		return nil, serverError(fmt.Errorf("delivery: unknown %v or %v", d.State, d.Reason))
	case d.State == DeliveryUnknown || d.Since.Unix() != hook.Since.Unix():
		return nil, nil
	}
	return newDeliveryJSON(d), nil
}
