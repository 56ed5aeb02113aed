package outbox

import (
	"errors"
	"fmt"

	"example.com/go-webhookcfg/webhookcfg/deliver"
)

// Notification is something to tell the receiver of an entity.
type Notification struct {
	// Client and Entity say whose webhook to call. They have 1 to 1,024 bytes.
	Client, Entity string

	// Message is what to send. Its ID is unique per client: if one with the same ID is in the
	// tables already, even a delivered one, enqueueing does nothing. So make IDs with
	// [deliver.MessageID] if an event can be enqueued twice. An empty ID is replaced with a
	// random one.
	Message deliver.Message
}

// ErrInvalid means that a notification can't be enqueued as it is: a name or the body is too
// long, or the ID or the content type is invalid. The text says which.
var ErrInvalid = errors.New("outbox: invalid notification")

const maxName = 1024 // as in sqlstore

func (o *Outbox) validate(n Notification) error {
	for _, name := range []struct{ what, text string }{{"client", n.Client}, {"entity", n.Entity}} {
		if name.text == "" || len(name.text) > maxName {
			return fmt.Errorf("%w: the %s has %d bytes, want 1 to %d", ErrInvalid, name.what, len(name.text), maxName)
		}
	}
	if most := o.sender.MaxBody(); len(n.Message.Body) > most {
		return fmt.Errorf("%w: the body has %d bytes, want at most the sender's MaxBody of %d", ErrInvalid, len(n.Message.Body), most)
	}
	if err := n.Message.Validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return nil
}
