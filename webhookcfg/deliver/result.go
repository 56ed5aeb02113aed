package deliver

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"example.com/go-webhookcfg/internal/redact"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// Outcome is how an attempt ended. [Schedule.Next] tells you what to do with the message
// then.
type Outcome uint8

// Outcomes. The zero Outcome is invalid.
const (
	// Delivered: the receiver responded with a status from 200 to 299.
	Delivered Outcome = iota + 1
	// Failed: the receiver couldn't be reached, or responded with another status. The attempt
	// counts, and the [Schedule] says when to make the next one.
	Failed
	// Deferred: no attempt was made, or it was abandoned, through no fault of the receiver.
	// It doesn't count. Try again after Wait.
	Deferred
	// Undeliverable: trying again is pointless until the webhook, the policy or the message
	// changes.
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

// Reason is why an outcome isn't [Delivered]. It's for your metrics and logs. Clients may
// only see [Reason.Public].
type Reason string

// Reasons. [Delivered] has the reason "".
//
// One that the status of a webhook can show needs its public word in webhookcfg/delivery.go, too, and one
// with which a notification of the outbox can end, in outbox/view.go and in package sent.
const (
	// ReasonUnreachable, with Failed: there was no connection, or no valid response in time, or
	// the policy refused an address of the host. Result.Err wraps an [*egress.UnreachableError]
	// whose Reason is the failed step.
	ReasonUnreachable Reason = "unreachable"
	// ReasonRedirect, with Failed: the status was from 300 to 399. Redirects aren't followed.
	ReasonRedirect Reason = "redirect"
	// ReasonThrottled, with Failed: the status was 429, 502, 503 or 504.
	ReasonThrottled Reason = "throttled"
	// ReasonStatus, with Failed: any other status. With Undeliverable, it's status 413: the
	// message is too large for the receiver.
	ReasonStatus Reason = "status"

	// ReasonBusy, with Deferred: a limit of the client, the host or the webhook was reached, or the
	// webhook was tested a moment ago.
	ReasonBusy Reason = "busy"
	// ReasonPaused, with Deferred: the webhook failed a moment ago, its receiver asked for a pause,
	// or nobody could connect to its host a moment ago.
	ReasonPaused Reason = "paused"
	// ReasonUnavailable, with Deferred: the store, the keys or Options.Prepare failed, the policy
	// couldn't check the address, the caller cancelled its context, or a test was cut short: see
	// [Sender.Test].
	ReasonUnavailable Reason = "unavailable"

	// ReasonNoWebhook, with Undeliverable: neither the entity nor the client has a webhook.
	ReasonNoWebhook Reason = "no_webhook"
	// ReasonOff, with Undeliverable: the client turned the entity off, although it has a base.
	ReasonOff Reason = "off"
	// ReasonGone, with Undeliverable: the receiver responded with status 410, so it wants no
	// more messages. A [Health] stops the webhook then. Without one, only this message is done,
	// and you should keep the next ones from being sent.
	ReasonGone Reason = "gone"
	// ReasonStopped, with Undeliverable: a [Health] has stopped the webhook. Nothing was
	// sent.
	ReasonStopped Reason = "stopped"
	// ReasonPolicy, with Undeliverable: the policy refuses the URL itself, or the IP address
	// in it. Nothing was sent.
	ReasonPolicy Reason = "policy"
	// ReasonMessage, with Undeliverable: the message's ID or content type is invalid, its body
	// is larger than [Options.MaxBody], or the Resolver rejects the client or the entity, for
	// example because it's empty. Nothing was sent.
	ReasonMessage Reason = "message"

	// ReasonExpired is the reason for a stop after [HealthOptions.StopAfter] of failures. No
	// Result has it.
	ReasonExpired Reason = "expired"
)

// Public returns the word for r that a client may see, as in [webhookcfg.DeliveryStatus], or
// "" if r isn't about the client's webhook. All ways to be unreachable share one word, as in
// the response to a set. If they differed, clients could scan networks and ports.
func (r Reason) Public() string {
	switch {
	case r == ReasonPolicy:
		return "refused"
	case slices.Contains(publicReasons, string(r)):
		return string(r)
	default:
		return ""
	}
}

var _, publicReasons = webhookcfg.DeliveryWords()

// Result is the result of one attempt. It never shows more of the URL than scheme, host and
// port when you print, log or marshal it.
type Result struct {
	// Outcome is how the attempt ended.
	Outcome Outcome

	// Reason is why Outcome is not Delivered.
	Reason Reason

	// Status is the status of the response, or 0 if there was none.
	Status int

	// Wait is the minimum delay before the next attempt. For Deferred it's random, so that
	// messages that wait together don't come back together. For Failed it comes from the receiver's Retry-After, up to
	// [Options.MaxPause]. Zero means no minimum.
	Wait time.Duration

	// Webhook is the webhook in effect, or the zero Webhook if it wasn't looked up.
	Webhook webhookcfg.Webhook

	// Duration is how long Send took.
	Duration time.Duration

	// Err is the cause. Log it, but don't show it to clients. It's nil only for Delivered,
	// ReasonNoWebhook and ReasonOff. For a test that was Delivered, it says why the HealthStore doesn't have
	// the success, so that stopped deliveries may not resume.
	Err error
}

// undeliverable returns the result for a message that can't be sent.
func undeliverable(reason Reason, err error) Result {
	return Result{Outcome: Undeliverable, Reason: reason, Err: err}
}

// deferred returns the result for a message that has to wait for a slot or the end of a pause.
func deferred(reason Reason, wait time.Duration, err error) Result {
	return Result{Outcome: Deferred, Reason: reason, Wait: wait, Err: err}
}

// unavailableWait is when to try again if the store, the keys or the policy was unavailable.
const unavailableWait = time.Second

// unavailable returns the result of an attempt that ended for a reason on our side.
func unavailable(err error) Result { return deferred(ReasonUnavailable, unavailableWait, err) }

// unavailableUnless returns the result of an attempt for which a function of the host has failed. If
// that's because of the message itself, it's the message's fault.
func unavailableUnless(err error) Result {
	if errors.Is(err, webhookcfg.ErrInvalidArgument) {
		return undeliverable(ReasonMessage, err)
	}
	return unavailable(err)
}

// IsUnconnected reports whether nobody could connect to the host, so that other webhooks there can't be
// reached either.
func (r Result) IsUnconnected() bool {
	unreachable, ok := errors.AsType[*egress.UnreachableError](r.Err)
	return ok && r.Outcome == Failed && !unreachable.Connected() && slices.Contains(unconnected, unreachable.Reason)
}

var unconnected = []egress.Reason{
	egress.ReasonDNS, egress.ReasonDenied, egress.ReasonConnection,
	egress.ReasonTLS, egress.ReasonCertificateExpired, egress.ReasonUnknownAuthority, egress.ReasonWrongName,
}

// verdict returns what the result says about the webhook and its host.
func (r Result) verdict() verdict {
	v := verdict{hasResponse: r.Status != 0}
	switch {
	case r.Outcome == Delivered:
		v.effect = effectSuccess
	case r.IsUnconnected():
		v.effect = effectUnconnected
	case r.Outcome == Failed, r.Reason == ReasonGone:
		v.effect, v.pause = effectFailure, r.Wait
	}
	return v
}

// LogValue implements [slog.LogValuer]. It returns a group of the non-zero fields, without
// the URL's path and query.
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
		attrs = append(attrs, slog.String("error", redact.Printable(r.Err.Error())))
	}
	return slog.GroupValue(attrs...)
}

// noResponse returns the result of a request that failed. A receiver that doesn't respond
// before the caller's deadline has failed too. Otherwise, a caller with a deadline below
// Options.Timeout would call it again and again. Nobody repeats a test like that. One that was
// cut short says nothing about the receiver, since a delivery would have waited longer.
func noResponse(err error, isCutShort bool) Result {
	unreachable, ok := errors.AsType[*egress.UnreachableError](err)
	if !ok {
		// The caller cancelled, a function of the policy panicked, or the policy couldn't
		// check the address or changed its mind.
		return unavailable(err)
	}
	if isCutShort && unreachable.Timeout() {
		return unavailable(fmt.Errorf("deliver: test with less time than a delivery: %w", err))
	}
	return Result{Outcome: Failed, Reason: ReasonUnreachable, Err: err}
}
