package sent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
)

// View is a queue as its clients may see it. It asks through [webhookcfg.Handler.Do], so its
// calls have the time limit, the events, the log records and the errors of the handler. It checks
// what a client asks for and what the queue returns. Its methods can be called concurrently.
type View struct {
	// Handler and Queue must be set.
	Handler *webhookcfg.Handler
	Queue   Queue
	// Bodies shows the ContentType and the Body of a [Notification], which are left out
	// otherwise.
	Bodies bool
}

const (
	opNotifications = "notifications"
	opSendAgain     = "send_again"
)

// Notifications returns a page of a client's notifications. You get the log record and the
// event of a read, with the operation "notifications". For the error, see [webhookcfg.Handler.Do].
func (v *View) Notifications(ctx context.Context, client string, q Query) (page Page, err error) {
	task := webhookcfg.Task{Operation: opNotifications, Scope: webhookcfg.Entity(q.Entity), IsRead: true}
	err = v.ask(ctx, client, task, func(ctx context.Context, queue Queue) error {
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
			if err := v.admit(&found.Notifications[i]); err != nil {
				return err
			}
		}
		page = found
		return nil
	})
	return page, err
}

// Notification returns one notification of a client, with its History. See
// [View.Notifications]. If there's none, the error has the code "not_found" and wraps
// [ErrNotFound].
func (v *View) Notification(ctx context.Context, client, id string) (n Notification, err error) {
	task := webhookcfg.Task{Operation: opNotifications, IsRead: true}
	err = v.ask(ctx, client, task, func(ctx context.Context, queue Queue) error {
		if !validID(id) {
			return queueError(ErrNotFound)
		}
		found, err := queue.Notification(ctx, client, id)
		if err != nil {
			return queueError(err)
		}
		if err := v.admit(&found); err != nil {
			return err
		}
		n = found
		return nil
	})
	return n, err
}

// PlanSendAgain returns what [View.SendAgain] would do with a selection that has a Scope.
// You only get an event and a log record if it fails.
func (v *View) PlanSendAgain(ctx context.Context, client string, s Selection) (plan Plan, err error) {
	task := webhookcfg.Task{Operation: opNotifications, Scope: s.Scope, IsRead: true, IsPart: true}
	err = v.ask(ctx, client, task, func(ctx context.Context, queue Queue) (err error) {
		if err := checkSelection(s); err != nil {
			return err
		}
		if s.ID != "" {
			return fmt.Errorf("%w: the selection has no Scope", webhookcfg.ErrInvalidArgument)
		}
		plan, err = queue.PlanSendAgain(ctx, client, s)
		return queueError(err)
	})
	return plan, err
}

// SendAgain sends notifications of a client again: one, or all that were given up or dropped
// or that wait for a further attempt, of an entity or of the client. The event has the
// operation "send_again". See [View.Notification].
func (v *View) SendAgain(ctx context.Context, client string, s Selection) error {
	task := webhookcfg.Task{Operation: opSendAgain, Scope: s.Scope}
	return v.ask(ctx, client, task, func(ctx context.Context, queue Queue) error {
		if err := checkSelection(s); err != nil {
			return err
		}
		return queueError(queue.SendAgain(ctx, client, s))
	})
}

// ask calls the queue for a client.
func (v *View) ask(ctx context.Context, client string, t webhookcfg.Task, call func(context.Context, Queue) error) error {
	return v.Handler.Do(ctx, client, t, func(ctx context.Context) error {
		if v.Queue == nil {
			return fmt.Errorf("%w: the View has no Queue", webhookcfg.ErrInvalidArgument)
		}
		return call(ctx, v.Queue)
	})
}

const (
	maxLimit = 1000
	// maxCursor is the longest After, in bytes.
	maxCursor = 2048
)

func checkQuery(q Query) error {
	switch {
	case q.Limit < 1 || q.Limit > maxLimit:
		return fmt.Errorf("%w: the limit must be 1 to %d", webhookcfg.ErrInvalidArgument, maxLimit)
	case q.State != "" && !slices.Contains(knownStates, q.State):
		return &webhookcfg.Error{Status: http.StatusBadRequest, Code: "invalid_request", Description: "The state must be " + strings.Join(knownStates, ", ")}
	case len(q.After) > maxCursor:
		return &webhookcfg.Error{Status: http.StatusBadRequest, Code: "invalid_request", Description: ruleCursor}
	}
	return nil
}

// ruleCursor is the only rule that a queue itself can find broken.
const ruleCursor = "The list must go on where a page of it ended"

func checkSelection(s Selection) error {
	switch {
	case (s.ID == "") == (s.Scope == webhookcfg.Scope{}):
		return fmt.Errorf("%w: set either the ID or the Scope of the selection", webhookcfg.ErrInvalidArgument)
	case s.ID != "" && !validID(s.ID):
		return queueError(ErrNotFound)
	}
	return nil
}

// validID reports whether a queue can have a notification with this identifier.
func validID(id string) bool {
	return id != "" && len(id) <= maxID && !strings.ContainsFunc(id, func(c rune) bool { return c < ' ' || c > '~' })
}

const maxID = 256

// admit checks what a queue has returned, and removes what the client mustn't see.
func (v *View) admit(n *Notification) error {
	if !v.Bodies {
		n.ContentType, n.Body = "", nil
	}
	if !slices.Contains(knownStates, n.State) {
		return defect(fmt.Errorf("a notification has the unknown state %q: see sent.Words", n.State))
	}
	for _, reason := range append([]string{n.Reason}, reasons(n.History)...) {
		if reason != "" && !slices.Contains(knownReasons, reason) {
			return defect(fmt.Errorf("a notification has the unknown reason %q: see sent.Words", reason))
		}
	}
	return nil
}

func reasons(history []Attempt) (all []string) {
	for _, a := range history {
		all = append(all, a.Reason)
	}
	return all
}

// queueError says which response an error of a [Queue] gets.
func queueError(err error) error {
	var waiter interface{ RetryAfter() time.Duration }
	switch {
	case err == nil, errors.As(err, &waiter):
		return err
	case errors.Is(err, ErrNotFound):
		return &refusal{webhookcfg.Error{Status: http.StatusNotFound, Code: "not_found", Description: "There is no such notification"}, err}
	case errors.Is(err, webhookcfg.ErrInvalidArgument):
		return &refusal{webhookcfg.Error{Status: http.StatusBadRequest, Code: "invalid_request", Description: ruleCursor}, err}
	default:
		return fmt.Errorf("Notifications: %w", err)
	}
}

// defect is an error that gets a 500.
func defect(cause error) error {
	return &refusal{webhookcfg.Error{Status: http.StatusInternalServerError, Code: "server_error"}, cause}
}

// refusal is an error that gets a response of its own.
type refusal struct {
	response webhookcfg.Error
	cause    error
}

// Error returns what the log shows.
func (r *refusal) Error() string { return r.cause.Error() }

// Unwrap returns the response and the cause.
func (r *refusal) Unwrap() []error { return []error{&r.response, r.cause} }
