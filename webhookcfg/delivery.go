package webhookcfg

import "time"

// DeliveryStatus is how the deliveries to a webhook go, as a client reads it; see
// [Options.DeliveryStatus]. Setting a webhook again starts over. The handler never changes a
// configuration because of it: a stopped webhook is still the one in effect.
type DeliveryStatus struct {
	// State is "ok" if the last delivery succeeded, "failing" if it failed and is attempted
	// again, and "stopped" if nothing is delivered until the client sets the webhook again
	// or, with the reason "refused", until the policy allows it. "" shows nothing.
	State string

	// Reason is why the State is "failing" or "stopped": "unreachable", "redirect",
	// "throttled", "status", "gone", "refused" or "expired". Clients learn no more of a
	// receiver's responses, or they could scan networks that they can't reach.
	Reason string

	// LastSuccess and LastFailure are when the last attempts that succeeded and failed
	// started, since an end would tell a refused port from a filtered one. Zero is never.
	LastSuccess, LastFailure time.Time
}

// The words of the responses.
var (
	deliveryStates  = []string{"", "ok", "failing", "stopped"}
	deliveryReasons = []string{"", "unreachable", "redirect", "throttled", "status", "gone", "refused", "expired"}
)
