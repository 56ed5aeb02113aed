package outbox

import (
	"fmt"
	"time"

	"example.com/go-webhookcfg/webhookcfg/deliver"
)

// State is where a notification stands.
type State uint8

// The states.
const (
	// Waiting: it's due, or waits for a slot, the end of a pause, or a retry.
	Waiting State = iota + 1
	// Delivered: the receiver responded with a status from 200 to 299.
	Delivered
	// GivenUp: the schedule was used up, the policy refused the URL, the message was invalid or too
	// large, or your own side failed for too long. [Outbox.SendAgain] starts again with the first
	// attempt.
	GivenUp
	// Dropped: nobody wanted it, since no webhook was in effect, it was stopped, or its receiver
	// responded with status 410. [Outbox.SendAgain] sends it after all.
	Dropped
)

var states = [...]string{Waiting: "waiting", Delivered: "delivered", GivenUp: "given up", Dropped: "dropped"}

// String returns "waiting", "delivered", "given up" or "dropped".
func (s State) String() string {
	if s == 0 || int(s) >= len(states) {
		return fmt.Sprintf("State(%d)", uint8(s))
	}
	return states[s]
}

// End is how a notification ended. See [Options.OnEnd].
type End struct {
	// Client is whose notification it was.
	Client string
	// State is Delivered, GivenUp or Dropped.
	State State
	// Reason is why it wasn't delivered. It's empty if it was.
	Reason deliver.Reason
	// Attempts is how many attempts were made.
	Attempts int
	// Took is the time from enqueueing to the end.
	Took time.Duration
}
