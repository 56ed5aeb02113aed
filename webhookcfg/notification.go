package webhookcfg

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// NotificationQueue is what clients can see of your queue of notifications, and what they can
// send again. An [example.com/go-webhookcfg/webhookcfg/deliver/outbox.Outbox] is one. If your
// queue is another, implement these methods, and never return or change anything of another
// client.
//
// The cost of a call must depend on what it returns, and not on what's in the queue. An error
// becomes a 503, or a 429 if it has a method RetryAfter() time.Duration.
type NotificationQueue interface {
	// Notifications returns a page of a client's notifications, the newest first. It can leave
	// out ContentType and Body, and all of History but the last attempt. If After isn't the
	// Next of a page, the error wraps [ErrInvalidArgument].
	Notifications(ctx context.Context, client string, q NotificationQuery) (NotificationPage, error)

	// Notification returns one notification of a client. If there's none with this identifier,
	// the error wraps [ErrNoNotification].
	Notification(ctx context.Context, client, id string) (Notification, error)

	// SendAgain makes the selected notifications due at once, under the same identifiers and
	// with a new schedule. The limits of the client and pauses of its receivers apply to them
	// as to new ones. If the selection has a Scope, SendAgain only starts this, and the work
	// goes on in the background. If the selected ID doesn't exist, the error wraps
	// [ErrNoNotification]. Ask a client to wait that sends the same ones again within seconds,
	// with RetryAfter: otherwise it could do so without end.
	SendAgain(ctx context.Context, client string, s Selection) error

	// PlanSendAgain returns what SendAgain would do with a selection that has a Scope, and how
	// the last one of this client goes.
	PlanSendAgain(ctx context.Context, client string, s Selection) (SendAgainPlan, error)
}

// ErrNoNotification means that the client has no notification with this identifier.
var ErrNoNotification = errors.New("webhookcfg: no such notification")

// NotificationQuery says which notifications a [NotificationPage] has.
type NotificationQuery struct {
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

// NotificationPage is a part of a client's notifications.
type NotificationPage struct {
	// Notifications can be fewer than the limit, or none, if a search for more would take too
	// long.
	Notifications []Notification
	// Next is the After of the next page. It's "" on the last page.
	Next string
}

// Notification is a notification, as its client may see it.
type Notification struct {
	// ID is the identifier of the message, and Entity is what it's about.
	ID, Entity string

	// State is "waiting", "delivered", "given_up" or "dropped". A notification is waiting until
	// it has ended, also during an attempt. It's given up after the last attempt, and dropped
	// if nobody wanted it.
	State string

	// Reason is why the last attempt failed, or why the notification was dropped. It's a Reason
	// of [DeliveryStatus], or "no_webhook", "off" or "stopped": none was in effect, the client had
	// turned the entity off, or deliveries were stopped. It's "" if there's nothing to say.
	Reason string

	// Made is when it was enqueued. Due is when the next attempt is due, if there has been one
	// and the notification is waiting.
	Made, Due time.Time

	// Attempts is the number of attempts since it was enqueued or sent again.
	Attempts int

	// History has the last attempts, the earliest first, also those before it was sent again.
	History []NotificationAttempt

	// ContentType and Body are what the receiver gets. [Handler.Notification] leaves them out,
	// unless [Options.NotificationBodies] is set.
	ContentType string
	Body        []byte
}

// NotificationAttempt is an attempt to deliver a notification.
type NotificationAttempt struct {
	// Started is when the attempt started.
	Started time.Time
	// Reason is why it failed. It's a Reason of [DeliveryStatus], or "" if it succeeded.
	Reason string
}

// NotificationWords returns the States and Reasons that a [Notification] can have, without
// "". Use it to check that you have a text for each.
func NotificationWords() (states, reasons []string) {
	return slices.Clone(notificationStates), slices.Clone(notificationReasons)
}

var (
	notificationStates  = []string{"waiting", "delivered", "given_up", "dropped"}
	notificationReasons = append(slices.Clone(deliveryReasons), "no_webhook", "off", "stopped")
)

// Selection says what to send again. Set either ID or Scope.
type Selection struct {
	// ID is the identifier of one notification. It can be in any state.
	ID string
	// Scope selects all notifications of an entity or of the client that were given up or
	// dropped, or that wait for a further attempt.
	Scope Scope
	// Since leaves out those that were enqueued before. The zero time leaves out none.
	Since time.Time
}

// SendAgainPlan says what sending a selection again means.
type SendAgainPlan struct {
	// Count is the number of selected notifications. Those that have no webhook then, or a stopped
	// one, are dropped again. If there are too many to count, IsMore is set.
	Count  int
	IsMore bool
	// Last is how the client's last SendAgain with a Scope goes. It's zero if there was none,
	// or long ago.
	Last SendAgainProgress
}

// SendAgainProgress is how a SendAgain with a Scope goes.
type SendAgainProgress struct {
	// Selection is what was selected.
	Selection Selection
	// Started is when it was started, and Ended when all that was selected was due. Ended is
	// zero before that.
	Started, Ended time.Time
	// Count is how many notifications have been made due so far.
	Count int
}

// Notifications returns a page of a client's notifications. You get the log record and the
// event of a read, with the operation "notifications". For the error, see [Handler.Set]. It
// wraps [errors.ErrUnsupported] without [Options.Notifications].
func (h *Handler) Notifications(ctx context.Context, client string, q NotificationQuery) (page NotificationPage, err error) {
	task := Task{Operation: opNotifications, Scope: Entity(q.Entity), IsRead: true}
	err = h.ask(ctx, client, task, func(ctx context.Context, queue NotificationQueue) error {
		if err := checkQuery(q); err != nil {
			return err
		}
		found, err := queue.Notifications(ctx, client, q)
		if err != nil {
			return queueError(err)
		}
		if len(found.Notifications) > q.Limit {
			return defect(fmt.Errorf("Notifications: %d notifications, although the limit is %d", len(found.Notifications), q.Limit))
		}
		found.Notifications = slices.Clone(found.Notifications) // which the queue can still use
		for i := range found.Notifications {
			if err := h.admit(&found.Notifications[i]); err != nil {
				return err
			}
		}
		page = found
		return nil
	})
	return page, err
}

// Notification returns one notification of a client, with its History. See
// [Handler.Notifications]. If there's none, the error has the code "not_found" and wraps
// [ErrNoNotification].
func (h *Handler) Notification(ctx context.Context, client, id string) (n Notification, err error) {
	task := Task{Operation: opNotifications, IsRead: true}
	err = h.ask(ctx, client, task, func(ctx context.Context, queue NotificationQueue) error {
		if !validNotificationID(id) {
			return queueError(ErrNoNotification)
		}
		found, err := queue.Notification(ctx, client, id)
		if err != nil {
			return queueError(err)
		}
		if err := h.admit(&found); err != nil {
			return err
		}
		n = found
		return nil
	})
	return n, err
}

// PlanSendAgain returns what [Handler.SendAgain] would do with a selection that has a Scope.
// You only get an event and a log record if it fails.
func (h *Handler) PlanSendAgain(ctx context.Context, client string, s Selection) (plan SendAgainPlan, err error) {
	task := Task{Operation: opNotifications, Scope: s.scope(), IsRead: true, IsPart: true}
	err = h.ask(ctx, client, task, func(ctx context.Context, queue NotificationQueue) (err error) {
		if err := checkSelection(s); err != nil {
			return err
		}
		if s.ID != "" {
			return fmt.Errorf("%w: the selection has no Scope", ErrInvalidArgument)
		}
		plan, err = queue.PlanSendAgain(ctx, client, s)
		return queueError(err)
	})
	return plan, err
}

// SendAgain sends notifications of a client again: one, or all that were given up or dropped
// or that wait for a further attempt, of an entity or of the client. The event has the
// operation "send_again". See [Handler.Notification].
func (h *Handler) SendAgain(ctx context.Context, client string, s Selection) error {
	task := Task{Operation: opSendAgain, Scope: s.scope()}
	return h.ask(ctx, client, task, func(ctx context.Context, queue NotificationQueue) error {
		if err := checkSelection(s); err != nil {
			return err
		}
		return queueError(queue.SendAgain(ctx, client, s))
	})
}

// ask calls the queue for a client.
func (h *Handler) ask(ctx context.Context, client string, t Task, call func(context.Context, NotificationQueue) error) error {
	return h.Do(ctx, client, t, func(ctx context.Context) error {
		queue := h.options.Notifications
		if queue == nil {
			return defect(fmt.Errorf("%w: there are no Options.Notifications", errors.ErrUnsupported))
		}
		return call(ctx, queue)
	})
}

// maxCursor is the longest After, in bytes.
const maxCursor = 2048

func checkQuery(q NotificationQuery) error {
	switch {
	case q.Limit < 1 || q.Limit > maxLimit:
		return fmt.Errorf("%w: the limit must be 1 to %d", ErrInvalidArgument, maxLimit)
	case q.State != "" && !slices.Contains(notificationStates, q.State):
		return &Error{Status: http.StatusBadRequest, Code: "invalid_request", Description: "The state must be " + strings.Join(notificationStates, ", ")}
	case len(q.After) > maxCursor:
		return &Error{Status: http.StatusBadRequest, Code: "invalid_request", Description: ruleCursor}
	}
	return nil
}

// ruleCursor is the only rule that a queue itself can find broken.
const ruleCursor = "The list must go on where a page of it ended"

// scope returns the scope that a selection is about, or the zero Scope if that isn't clear.
func (s Selection) scope() Scope {
	if s.ID != "" {
		return Scope{}
	}
	return s.Scope
}

func checkSelection(s Selection) error {
	switch {
	case (s.ID == "") == (s.Scope == Scope{}):
		return fmt.Errorf("%w: set either the ID or the Scope of the selection", ErrInvalidArgument)
	case s.ID != "" && !validNotificationID(s.ID):
		return queueError(ErrNoNotification)
	}
	return nil
}

// validNotificationID reports whether a queue can have a notification with this identifier.
func validNotificationID(id string) bool {
	return id != "" && len(id) <= maxNotificationID && !strings.ContainsFunc(id, func(c rune) bool { return c < ' ' || c > '~' })
}

const maxNotificationID = 256

// admit checks what a queue has returned, and removes what the client mustn't see.
func (h *Handler) admit(n *Notification) error {
	if !h.options.NotificationBodies {
		n.ContentType, n.Body = "", nil
	}
	if !slices.Contains(notificationStates, n.State) {
		return defect(fmt.Errorf("a notification has the unknown state %q: see NotificationWords", n.State))
	}
	for _, reason := range append([]string{n.Reason}, reasons(n.History)...) {
		if reason != "" && !slices.Contains(notificationReasons, reason) {
			return defect(fmt.Errorf("a notification has the unknown reason %q: see NotificationWords", reason))
		}
	}
	return nil
}

func reasons(history []NotificationAttempt) (all []string) {
	for _, a := range history {
		all = append(all, a.Reason)
	}
	return all
}

// queueError says which response an error of a [NotificationQueue] gets.
func queueError(err error) error {
	var waiter interface{ RetryAfter() time.Duration }
	switch {
	case err == nil, errors.As(err, &waiter):
		return err
	case errors.Is(err, ErrNoNotification):
		return &refusal{Error{Status: http.StatusNotFound, Code: "not_found", Description: "There is no such notification"}, err}
	case errors.Is(err, ErrInvalidArgument):
		return &refusal{Error{Status: http.StatusBadRequest, Code: "invalid_request", Description: ruleCursor}, err}
	default:
		return fmt.Errorf("Notifications: %w", err)
	}
}

// defect is an error that gets a 500.
func defect(cause error) error {
	return &refusal{Error{Status: http.StatusInternalServerError, Code: "server_error"}, cause}
}

// refusal is an error that gets a response of its own.
type refusal struct {
	response Error
	cause    error
}

// Error returns what the log shows.
func (r *refusal) Error() string { return r.cause.Error() }

// Unwrap returns the response and the cause.
func (r *refusal) Unwrap() []error { return []error{&r.response, r.cause} }
