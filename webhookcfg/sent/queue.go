package sent

import (
	"context"
	"errors"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
)

// Queue is what clients can see of your queue of notifications, and what they can
// send again. An [example.com/go-webhookcfg/webhookcfg/deliver/outbox.Outbox] is one. If your
// queue is another, implement these methods, and never return or change anything of another
// client.
//
// The cost of a call must depend on what it returns, and not on what's in the queue. An error
// becomes a 503, or a 429 if it has a method RetryAfter() time.Duration.
type Queue interface {
	// Notifications returns a page of a client's notifications, the newest first. It can leave
	// out ContentType and Body, and all of History but the last attempt. If After isn't the
	// Next of a page, the error wraps [webhookcfg.ErrInvalidArgument].
	Notifications(ctx context.Context, client string, q Query) (Page, error)

	// Notification returns one notification of a client. If there's none with this identifier,
	// the error wraps [ErrNotFound].
	Notification(ctx context.Context, client, id string) (Notification, error)

	// SendAgain makes the selected notifications due at once, under the same identifiers and
	// with a new schedule. The limits of the client and pauses of its webhooks apply to them
	// as to new ones. If the selection has a Scope, SendAgain only starts this, and the work
	// goes on in the background. If the selected ID doesn't exist, the error wraps
	// [ErrNotFound]. Ask a client to wait that sends the same ones again within seconds,
	// with RetryAfter: otherwise it could do so without end.
	SendAgain(ctx context.Context, client string, s Selection) error

	// PlanSendAgain returns what SendAgain would do with a selection that has a Scope, and how
	// the last one of this client goes.
	PlanSendAgain(ctx context.Context, client string, s Selection) (Plan, error)
}

// ErrNotFound means that the client has no notification with this identifier.
var ErrNotFound = errors.New("sent: no such notification")

// Query says which notifications a [Page] has.
type Query struct {
	// Entity leaves out the notifications of other entities, unless it's "".
	Entity string
	// State leaves out notifications in other states, unless it's "". A queue can then list
	// those first that ended last.
	State string
	// After is the Next of the page before, or "" for the first page.
	After string
	// Limit is the maximum number of notifications, from 1 to 1000.
	Limit int
}

// Page is a part of a client's notifications.
type Page struct {
	// Notifications can be fewer than the limit, or none, if a search for more would take too
	// long.
	Notifications []Notification
	// Next is the After of the next page. It's "" on the last page.
	Next string
}

// Selection says what to send again. Set either ID or Scope.
type Selection struct {
	// ID is the identifier of one notification. It can be in any state.
	ID string
	// Scope selects all notifications of an entity or of the client that were given up or
	// dropped, or that wait for a further attempt.
	Scope webhookcfg.Scope
	// Since leaves out those that were enqueued before. The zero time leaves out none.
	Since time.Time
}

// Plan says what sending a selection again means.
type Plan struct {
	// Count is the number of selected notifications. Those that have no webhook then, or a stopped
	// one, are dropped again. If there are too many to count, IsMore is set.
	Count  int
	IsMore bool
	// Last is how the client's last SendAgain with a Scope goes. It's zero if there was none,
	// or long ago.
	Last Progress
}

// Progress is how a SendAgain with a Scope goes.
type Progress struct {
	// Selection is what was selected.
	Selection Selection
	// Started is when it was started, and Ended when all that was selected was due. Ended is
	// zero before that.
	Started, Ended time.Time
	// Count is how many notifications have been made due so far.
	Count int
}
