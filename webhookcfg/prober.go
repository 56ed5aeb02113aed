package webhookcfg

import (
	"context"

	"example.com/go-webhookcfg/webhookcfg/egress"
)

// Prober checks that a webhook can be reached, before a set is applied. It must be safe for
// concurrent use and return soon after ctx ends; see [Store]. [egress.Prober] is the default.
type Prober interface {
	// Probe returns nil if target, which the policy allows, can be reached.
	//
	// An error with a method RetryAfter() time.Duration asks the client to wait (429), and
	// one that wraps [egress.ErrUnavailable] means that the prober is unavailable (503). Any
	// other error means that the target can't be reached (400). Its text is for you, not for
	// the client, and must not hold more of the URL than its host and port.
	Probe(ctx context.Context, client string, target egress.URL) error
}

// ProbeMode specifies the effect of a failed probe.
type ProbeMode uint8

const (
	// ProbeEnforce refuses a set whose target cannot be reached.
	ProbeEnforce ProbeMode = iota
	// ProbeWarn applies it all the same, and reports the failure in [Event.Err].
	ProbeWarn
	// ProbeOff does not probe.
	ProbeOff

	probeModes // their number
)
