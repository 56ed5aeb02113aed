package deliver

import (
	"fmt"
	"log/slog"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
)

// Outcome is what a queue does with the message after an attempt. [Reason] says why.
type Outcome uint8

// Outcomes. The zero Outcome is none of them, and invalid.
const (
	// Delivered: the receiver responded with a status from 200 to 299.
	Delivered Outcome = iota + 1
	// Failed: the receiver could not be reached, or responded with another status. The
	// attempt counts, and the [Schedule] has the next one.
	Failed
	// Deferred: no attempt was made, or it was abandoned, for a reason that is not the
	// receiver's. It does not count as one, and is due again after Wait.
	Deferred
	// Undeliverable: another attempt has the same outcome until the webhook, the policy
	// or the message changes.
	Undeliverable
)

var outcomes = [...]string{
	Delivered:     "delivered",
	Failed:        "failed",
	Deferred:      "deferred",
	Undeliverable: "undeliverable",
}

// String returns "delivered", "failed", "deferred" or "undeliverable".
func (o Outcome) String() string {
	if o == 0 || int(o) >= len(outcomes) {
		return fmt.Sprintf("Outcome(%d)", uint8(o))
	}
	return outcomes[o]
}

// Reason is why an outcome is not [Delivered]. It is meant for your metrics and logs: a
// client may see only what [Reason.Public] returns.
type Reason string

// Reasons; "" for [Delivered].
const (
	// ReasonUnreachable, of Failed: no connection or no response in time, or the policy
	// refused an address of the name. Result.Err wraps an [*egress.UnreachableError],
	// whose Reason is the step that failed.
	ReasonUnreachable Reason = "unreachable"
	// ReasonRedirect, of Failed: the status was one from 300 to 399. No redirect is
	// followed.
	ReasonRedirect Reason = "redirect"
	// ReasonThrottled, of Failed: the status was 429, 502, 503 or 504.
	ReasonThrottled Reason = "throttled"
	// ReasonStatus, of Failed: the status was another one.
	ReasonStatus Reason = "status"

	// ReasonBusy, of Deferred: as many attempts as allowed are under way for the client,
	// or for the client at this receiver, or the URL changed during the wait for a slot, or
	// the webhook was tested a moment ago.
	ReasonBusy Reason = "busy"
	// ReasonPaused, of Deferred: the receiver failed a moment ago, or asked to be called
	// later.
	ReasonPaused Reason = "paused"
	// ReasonUnavailable, of Deferred: the webhook or the keys could not be read, the policy
	// could not check the address, or the caller cancelled its context.
	ReasonUnavailable Reason = "unavailable"

	// ReasonNoWebhook, of Undeliverable: none is in effect for the entity, or it is off.
	ReasonNoWebhook Reason = "no_webhook"
	// ReasonGone, of Undeliverable: the receiver responded with status 410; it wants no
	// further message.
	ReasonGone Reason = "gone"
	// ReasonStopped, of Undeliverable: a [Health] stopped the webhook earlier, and it has
	// not been set since. Nothing was sent.
	ReasonStopped Reason = "stopped"
	// ReasonPolicy, of Undeliverable: the policy refuses the text of the URL, or its literal
	// address. Nothing was sent.
	ReasonPolicy Reason = "policy"
	// ReasonMessage, of Undeliverable: the ID or the content type of the message is invalid,
	// or the client or the entity is one that the Resolver does not accept, such as "".
	// Nothing was sent.
	ReasonMessage Reason = "message"

	// ReasonExpired is why a Health stopped a webhook: all deliveries failed for
	// [HealthOptions.StopAfter]. No Result has it.
	ReasonExpired Reason = "expired"
)

// Public returns the word for r that a client may see, as in
// [webhookcfg.DeliveryStatus]; "" if r says nothing about the client's webhook. All ways in
// which a receiver cannot be reached share a word, as in the response to a set: the
// difference would allow clients to scan networks and ports.
func (r Reason) Public() string {
	switch r {
	case ReasonUnreachable, ReasonRedirect, ReasonThrottled, ReasonStatus, ReasonGone, ReasonExpired:
		return string(r)
	case ReasonPolicy:
		return "refused"
	default:
		return ""
	}
}

// Result is what became of an attempt. However it is printed, logged or marshalled, it
// shows no more of the URL than scheme, host and port.
type Result struct {
	// Outcome is what became of the attempt.
	Outcome Outcome

	// Reason is why Outcome is not Delivered.
	Reason Reason

	// Status is the status of the response, or 0 if there was none.
	Status int

	// Wait is the minimum delay before the next attempt. If Outcome is Deferred, it's the
	// time until the next turn. If it is Failed, it's what the receiver asked for with
	// Retry-After, up to [Options.MaxPause]. Zero means that there is no minimum.
	Wait time.Duration

	// Webhook is the webhook that was in effect; the zero one if that was not looked up.
	Webhook webhookcfg.Webhook

	// Duration is how long Send took, including the wait for a slot.
	Duration time.Duration

	// Err is the cause, for the host's log; it must not be disclosed to clients. It is
	// nil if Outcome is Delivered or Reason is ReasonNoWebhook, and only then.
	Err error
}

// verdict returns what the result shows about the receiver.
func (r Result) verdict() verdict {
	switch {
	case r.Outcome == Delivered:
		return verdict{effect: effectSuccess}
	case r.Outcome == Failed, r.Reason == ReasonGone:
		return verdict{effect: effectFailure, pause: r.Wait}
	default:
		return verdict{effect: effectNone}
	}
}

// LogValue implements [slog.LogValuer]. It returns a group of those fields that are not
// zero, without the path and the query of the URL.
func (r Result) LogValue() slog.Value {
	attrs := []slog.Attr{slog.String("outcome", r.Outcome.String())}
	if r.Reason != "" {
		attrs = append(attrs, slog.String("reason", string(r.Reason)))
	}
	if r.Status != 0 {
		attrs = append(attrs, slog.Int("status", r.Status))
	}
	if r.Wait != 0 {
		attrs = append(attrs, slog.Duration("wait", r.Wait))
	}
	if !r.Webhook.URL.IsZero() {
		attrs = append(attrs, slog.Any("url", r.Webhook.URL))
	}
	attrs = append(attrs, slog.Duration("duration", r.Duration))
	if r.Err != nil {
		attrs = append(attrs, slog.String("error", r.Err.Error()))
	}
	return slog.GroupValue(attrs...)
}
