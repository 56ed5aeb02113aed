package webhookcfg

import (
	"context"

	"example.com/go-webhookcfg/webhookcfg/egress"
)

// Prober checks that a webhook can be reached, before a set is applied. It must be
// safe for concurrent use and honour its context: return soon after ctx ends. The
// handler waits for a prober that does not; see [Store]. [egress.Prober] is the
// default.
type Prober interface {
	// Probe returns nil if target, which the policy allows, can be reached.
	//
	// An error with a method RetryAfter() time.Duration asks the client to wait
	// (429), and one that wraps [egress.ErrUnavailable] means that the prober is
	// unavailable (503). Any other error means that the target cannot be reached
	// (400); the reason is reported to the host and not to the client. Texts must not
	// hold more of the URL than its host and port.
	Probe(ctx context.Context, client string, target egress.URL) error
}

// ProbeMode specifies the effect of a failed probe.
type ProbeMode uint8

// The modes. The zero value is ProbeEnforce.
const (
	// ProbeEnforce refuses a set whose target cannot be reached.
	ProbeEnforce ProbeMode = iota
	// ProbeWarn applies it all the same, and reports the failure in [Event.Err].
	ProbeWarn
	// ProbeOff does not probe.
	ProbeOff

	probeModes // their number
)
