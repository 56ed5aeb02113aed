package deliver

import (
	"fmt"
	"log/slog"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
)

// Outcome is what became of an attempt. The package documentation has the table of what
// leads to each outcome, and what a queue does then.
type Outcome uint8

// Outcomes. The zero Outcome is none of them, and invalid.
const (
	// Delivered: the receiver responded with a status from 200 to 299.
	Delivered Outcome = iota + 1
	// NoWebhook: none is in effect for the entity.
	NoWebhook
	// Stopped: the webhook was stopped earlier, and has not been set since. Nothing was
	// sent.
	Stopped
	// Failed: the receiver could not be reached, or responded with another status.
	Failed
	// Gone: the receiver responded with status 410; it wants no further message.
	Gone
	// Refused: the policy refuses the URL, or the message, the client or the entity is
	// invalid. Nothing was sent, and another attempt has the same outcome until the
	// policy, the webhook or the message changes.
	Refused
	// Deferred: no attempt was made, or it was abandoned, for a reason that is not the
	// receiver's. It does not count as one, and is due again after Wait.
	Deferred
)

var outcomes = [...]string{
	Delivered: "delivered",
	NoWebhook: "no_webhook",
	Stopped:   "stopped",
	Failed:    "failed",
	Gone:      "gone",
	Refused:   "refused",
	Deferred:  "deferred",
}

// String returns "delivered", "no_webhook", "stopped", "failed", "gone", "refused" or
// "deferred".
func (o Outcome) String() string {
	if o == 0 || int(o) >= len(outcomes) {
		return fmt.Sprintf("Outcome(%d)", uint8(o))
	}
	return outcomes[o]
}

// Reason is why an outcome is not Delivered. It is meant for metrics and logs of the host:
// disclosed to clients, it would allow them to scan networks and ports.
type Reason string

// Reasons; "" for [Delivered] and [NoWebhook].
const (
	// ReasonUnreachable, of Failed: no connection or no response, or the policy refused
	// an address of the name.
	ReasonUnreachable Reason = "unreachable"
	// ReasonTimeout, of Failed: no response within [Options.Timeout], or before an earlier
	// deadline of the caller.
	ReasonTimeout Reason = "timeout"
	// ReasonTLS, of Failed: the TLS handshake or the verification of the certificate
	// failed.
	ReasonTLS Reason = "tls"
	// ReasonRedirect, of Failed: the status was one from 300 to 399. No redirect is
	// followed.
	ReasonRedirect Reason = "redirect"
	// ReasonThrottled, of Failed: the status was 429, 502, 503 or 504.
	ReasonThrottled Reason = "throttled"
	// ReasonStatus, of Failed: the status was another one.
	ReasonStatus Reason = "status"

	// ReasonPolicy, of Refused: the policy refuses the text of the URL, or its literal
	// address.
	ReasonPolicy Reason = "policy"
	// ReasonMessage, of Refused: the ID or the content type of the message is invalid, or
	// the client or the entity is one that the Resolver does not accept, such as "".
	ReasonMessage Reason = "message"

	// ReasonBusy, of Deferred: as many attempts as allowed are under way for the client,
	// or for the client at this receiver.
	ReasonBusy Reason = "busy"
	// ReasonPaused, of Deferred: the receiver failed a moment ago, or asked to be called
	// later.
	ReasonPaused Reason = "paused"
	// ReasonUnavailable, of Deferred: the webhook or the keys could not be read, the policy
	// could not check the address, or the caller cancelled its context.
	ReasonUnavailable Reason = "unavailable"

	// ReasonGone, of Gone and Stopped: the receiver responded with status 410.
	ReasonGone Reason = "gone"
	// ReasonExpired, of Stopped: all deliveries failed for [HealthOptions.StopAfter].
	ReasonExpired Reason = "expired"
)

// Result is what became of an attempt. However it is printed, logged or marshalled, it
// shows no more of the URL than scheme, host and port.
type Result struct {
	// Outcome is what became of the attempt.
	Outcome Outcome

	// Reason is why Outcome is not Delivered.
	Reason Reason

	// Status is the status of the response, or 0 if there was none.
	Status int

	// Wait is how long not to try again: if Outcome is Deferred, the time until the
	// next turn, and if it is Failed, what the receiver asked for with Retry-After, up
	// to [Options.MaxPause]. Zero means that there is no such limit.
	Wait time.Duration

	// Webhook is the webhook that was in effect; the zero one if that was not looked up.
	Webhook webhookcfg.Webhook

	// Duration is how long the attempt took.
	Duration time.Duration

	// Err is the cause, for the host's log; it must not be disclosed to clients. It is
	// nil if Outcome is Delivered, NoWebhook or Stopped, and only then.
	Err error
}

// verdict returns what the result shows about the receiver.
func (r Result) verdict() verdict {
	switch r.Outcome {
	case Delivered:
		return verdict{effect: effectSuccess}
	case Failed, Gone:
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
