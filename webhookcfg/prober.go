package webhookcfg

import (
	"context"
	"fmt"

	"example.com/go-webhookcfg/webhookcfg/egress"
)

// Prober checks that a webhook can be reached, before a set is applied. It must
// be safe for concurrent use and return soon after ctx ends. [egress.Prober] is
// the one that the handler uses by default.
type Prober interface {
	// Probe returns nil if target, which the policy allows, can be reached.
	//
	// An error with a method RetryAfter() time.Duration asks the client to wait
	// (429). Any other error means that the target cannot be reached (400); the
	// caller is not told why, the host is. Texts must not hold more of the URL than
	// its host and port.
	Probe(ctx context.Context, client string, target egress.URL) error
}

// ProbeMode says what the outcome of a probe is for.
type ProbeMode uint8

// The modes. The zero value is ProbeEnforce.
const (
	// ProbeEnforce refuses a set whose target cannot be reached.
	ProbeEnforce ProbeMode = iota
	// ProbeWarn applies it all the same, and tells the host in [Event.Err].
	ProbeWarn
	// ProbeOff does not probe.
	ProbeOff
)

var probeModes = [...]string{ProbeEnforce: "enforce", ProbeWarn: "warn", ProbeOff: "off"}

// String returns "enforce", "warn" or "off".
func (m ProbeMode) String() string {
	if int(m) < len(probeModes) {
		return probeModes[m]
	}
	return fmt.Sprintf("ProbeMode(%d)", uint8(m))
}
