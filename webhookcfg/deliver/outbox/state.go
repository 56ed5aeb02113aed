package outbox

import (
	"cmp"
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
	// GivenUp: the schedule was used up, or the policy refused the URL. [Outbox.SendAgain]
	// starts again with the first attempt.
	GivenUp
	// Dropped: nobody wanted it, since no webhook was in effect or it was stopped.
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

// row is a waiting notification.
type row struct {
	position
	entity      string
	id          string
	contentType string
	body        []byte // nil if it's long
	attempts    int
	left        time.Duration // until it's due
	since       int64         // identifies the webhook of the last attempt; 0 if none
	age         time.Duration // since it was enqueued
	enqueued    int64         // tells it from an earlier one with its number, which was lost in a failover
}

// position is where a notification waits: by the time when it's due, which is zero before its
// first attempt, and then by number.
type position struct{ due, seq int64 }

func (p position) compare(q position) int {
	return cmp.Or(cmp.Compare(p.due, q.due), cmp.Compare(p.seq, q.seq))
}

// Notifications wait in two zones: those without an attempt, and retries.
const (
	zoneFirst = iota
	zoneRetry
)

func (p position) zone() int {
	if p.due > 0 {
		return zoneRetry
	}
	return zoneFirst
}

// State numbers in the tables.
const (
	stateFresh = iota
	stateWaiting
	stateDelivered
	stateGivenUp
	stateDropped
)

// outcome is what became of a notification.
type outcome struct {
	Seq      int64  `json:"n"`
	Enqueued int64  `json:"e"`
	State    int    `json:"s"`
	Attempts int    `json:"a"`
	Delay    int64  `json:"d"` // in microseconds
	Status   int    `json:"c"`
	Reason   string `json:"r"`
	Since    int64  `json:"w"` // of the webhook, in microseconds
	History  string `json:"h"` // what to add to it
}
