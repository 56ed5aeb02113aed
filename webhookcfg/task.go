package webhookcfg

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// Task is what [Handler.Do] does for a client.
type Task struct {
	// Operation is the name of the task in the event and in the log record.
	Operation string
	// Scope is what the task is about, for the event. A malformed identifier in it gets the
	// client 400. It can be zero.
	Scope Scope
	// IsRead means that the task changes nothing, so the level of its log record is Debug.
	IsRead bool
	// IsPart means that the task is a part of something that has an event of its own, so it
	// only gets one if it fails.
	IsPart bool
}

// Do lets your own code do something for a client as the handler does, for example in an API
// of yours: with [Options.Timeout], an event and a log record. A panic becomes an error, and
// no text shows more of a URL than its host and port. Package
// [example.com/go-webhookcfg/webhookcfg/sent] does its work in it.
//
// The error is an [*Error], as from [Handler.Set]. If do returns an [*Error], or wraps one, the
// code and the description come from it. Otherwise the client is asked to wait (429) if the
// error has a method RetryAfter() time.Duration, it's a defect (500) if the error wraps
// [ErrInvalidArgument], and a part of the service has failed (503) with any other error.
func (h *Handler) Do(ctx context.Context, client string, t Task, do func(ctx context.Context) error) error {
	o := h.newOperation(t.Operation)
	o.isTask, o.isChange, o.failuresOnly = true, !t.IsRead, t.IsPart
	return o.callFor(ctx, client, func(ctx context.Context) *apiError {
		if t.Scope.Entity() != "" {
			if _, e := h.entities.scope(t.Scope.Entity()); e != nil {
				return e // without the text in the event, since it can be anything
			}
		}
		o.event.Scope = t.Scope
		return o.taskError(do(ctx))
	})
}

// taskError classifies an error of a task.
func (o *operation) taskError(err error) *apiError {
	if err == nil {
		return nil
	}
	if response, ok := errors.AsType[*Error](err); ok {
		return o.responseError(response, err)
	}
	if wait, ok := askedToWait(err); ok {
		return throttled(err, wait)
	}
	return storeError(err)
}

// responseError returns the error that a task chose from the handler's own. The texts of a 5xx are
// always the same.
func (o *operation) responseError(response *Error, err error) *apiError {
	cause := err
	if err == response {
		cause = response.cause
	}
	of := code{response.Status, response.Code}
	switch {
	case of == codeServerError:
		return serverError(cause)
	case of == codeTemporarilyUnavailable:
		return unavailable(cause)
	case of == codeTooManyRequests:
		return throttled(cause, response.RetryAfter)
	case slices.Contains(codes, of) && !strings.ContainsFunc(response.Description, isUnsafeInText),
		of.status == http.StatusForbidden && slices.Contains(o.h.options.Refusals, Refusal{of.name, response.Description}):
		return &apiError{code: of, description: response.Description, cause: cause, retryAfter: response.RetryAfter, allow: response.allow}
	}
	return serverError(fmt.Errorf("a task returned a response that isn't one of the handler's: %w", err))
}
