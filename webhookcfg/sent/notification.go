package sent

import (
	"slices"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
)

// Notification is a notification, as its client may see it.
type Notification struct {
	// ID is the identifier of the message, and Entity is what it's about.
	ID, Entity string

	// State is "waiting", "delivered", "given_up" or "dropped". A notification is waiting until
	// it has ended, also during an attempt. It's given up after the last attempt, and dropped
	// if nobody wanted it.
	State string

	// Reason is why the last attempt failed, or why the notification was dropped. It's a Reason
	// of [webhookcfg.DeliveryStatus], or "no_webhook", "off" or "stopped": none was in effect,
	// the client had turned the entity off, or deliveries were stopped. It's "" if there's
	// nothing to say.
	Reason string

	// Made is when it was enqueued. Due is when the next attempt is due, if there has been one
	// and the notification is waiting. While its webhook pauses, that's not before the end.
	Made, Due time.Time

	// Attempts is the number of attempts since it was enqueued or sent again.
	Attempts int

	// History has the last attempts, the earliest first, also those before it was sent again.
	History []Attempt

	// ContentType and Body are what the receiver gets. [View.Notification] leaves them out,
	// unless [View.Bodies] is set.
	ContentType string
	Body        []byte
}

// Attempt is an attempt to deliver a notification.
type Attempt struct {
	// Started is when the attempt started.
	Started time.Time
	// Reason is why it failed. It's a Reason of [webhookcfg.DeliveryStatus], or "" if it succeeded.
	Reason string
}

// Words returns the States and Reasons that a [Notification] can have, without "". Use it to
// check that you have a text for each.
func Words() (states, reasons []string) {
	return slices.Clone(knownStates), slices.Clone(knownReasons)
}

var (
	knownStates  = []string{"waiting", "delivered", "given_up", "dropped"}
	knownReasons = func() []string {
		_, reasons := webhookcfg.DeliveryWords()
		return append(reasons, "no_webhook", "off", "stopped")
	}()
)
