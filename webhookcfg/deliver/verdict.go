package deliver

import "time"

const defaultMaxPause = time.Hour

// verdict is what an attempt's result says about the webhook and its host.
type verdict struct {
	effect      effect
	hasResponse bool          // so others can connect to the host, too
	pause       time.Duration // the receiver asked for, up to Options.MaxPause; zero: none
}

type effect uint8

const (
	effectNone effect = iota // the attempt ended for a reason of the sender's
	effectSuccess
	effectFailure
	effectUnconnected // a failure of the host, and not of the webhook
)
