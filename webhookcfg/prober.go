package webhookcfg

import (
	"context"

	"example.com/go-webhookcfg/webhookcfg/egress"
)

// Prober checks that a webhook can be reached before the handler sets it. It must be safe for
// concurrent use, and return soon after ctx ends, like a [Store]. By default the handler uses
// an [egress.Prober].
type Prober interface {
	// Probe returns nil if it can reach target. The policy has already allowed the target.
	//
	// If your error has a method RetryAfter() time.Duration, the client is asked to wait
	// (429). If it wraps [egress.ErrUnavailable], the prober itself is unavailable (503). Any
	// other error means that the target can't be reached (400).
	//
	// The client doesn't see the text of the error. Don't put more of the URL into it than
	// its host and port, since it's logged.
	Probe(ctx context.Context, client string, target egress.URL) error
}

// ProbeMode says what happens if a probe fails.
type ProbeMode uint8

const (
	// ProbeEnforce refuses a set if its target can't be reached. This is the default.
	ProbeEnforce ProbeMode = iota
	// ProbeWarn makes the change anyway, and reports the failed probe in [Event.Err].
	ProbeWarn
	// ProbeOff does not probe.
	ProbeOff

	probeModes // the number of modes
)
