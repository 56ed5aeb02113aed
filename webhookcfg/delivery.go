package webhookcfg

import "time"

// DeliveryStatus is how the deliveries to a webhook go, as a client reads it. See
// [Options.DeliveryStatus]. It says nothing of what the client had set before that webhook.
type DeliveryStatus struct {
	// State is "ok" if the last delivery succeeded, "failing" if it failed and is attempted
	// again, and "stopped" if nothing is delivered until the client sets the webhook again
	// or, with the reason "refused", until the policy allows it. If it is "", nothing is
	// known, and the read shows nothing.
	State string

	// Reason is why the State is "failing" or "stopped": "unreachable", "redirect",
	// "throttled", "status", "gone", "refused" or "expired". It is all that a client learns
	// of a receiver's responses: a status or a text would make the service a scanner of
	// networks that the client cannot reach.
	Reason string

	// LastSuccess and LastFailure are when the last attempt that succeeded and the last one
	// that failed started; zero if there was none. The end of an attempt would tell a refused
	// port from a filtered one.
	LastSuccess, LastFailure time.Time
}

// The words of the responses.
var (
	deliveryStates  = []string{"", "ok", "failing", "stopped"}
	deliveryReasons = []string{"", "unreachable", "redirect", "throttled", "status", "gone", "refused", "expired"}
)
