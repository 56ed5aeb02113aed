package webhookcfg

import (
	"context"
	"errors"

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

// probe checks that the URL can be reached, if the mode asks for it. The prober can have a
// shorter time limit of its own.
func (o *operation) probe(ctx context.Context) *apiError {
	if o.h.options.ProbeMode == ProbeOff {
		return nil
	}
	probeCtx, cancel := context.WithTimeout(ctx, o.h.options.ProbeTimeout)
	defer cancel()
	err := o.h.options.Prober.Probe(probeCtx, o.event.Client, o.url)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil: // the whole request ended, not just the probe
		return unavailable(err)
	case o.h.options.ProbeMode == ProbeWarn:
		o.event.Err = o.redactedError(err)
		return nil
	}
	if wait, ok := askedToWait(err); ok {
		return throttled(err, wait)
	}
	if errors.Is(err, egress.ErrUnavailable) {
		return unavailable(err)
	}
	return &apiError{code: codeWebhookUnreachable, description: "The webhook URL could not be reached", cause: err}
}
