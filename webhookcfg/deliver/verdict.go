package deliver

import "time"

const defaultMaxPause = time.Hour

// verdict is an attempt's result for its receiver.
type verdict struct {
	effect effect
	pause  time.Duration // the receiver asked for, up to Options.MaxPause; zero: none
}

type effect uint8

const (
	effectNone effect = iota // the attempt ended for a reason of the sender's
	effectSuccess
	effectFailure
)
