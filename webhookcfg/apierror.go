package webhookcfg

import (
	"errors"
	"time"
)

// code is an error code of a response, a row of errorTable.
type code uint8

const (
	codeInvalidRequest code = iota
	codeInvalidWebhookURL
	codeWebhookUnreachable
	codeInvalidClient
	codeAllRefused
	codeNotFound
	codeUnknownEntity
	codeMethodNotAllowed
	codeRequestTooLarge
	codeUnsupportedMediaType
	codeTooManyRequests
	codeServerError
	codeTemporarilyUnavailable
)

// errorTable holds the status and the name of each error code.
var errorTable = [...]struct {
	status int
	name   string
}{
	codeInvalidRequest:         {400, "invalid_request"},
	codeInvalidWebhookURL:      {400, "invalid_webhook_url"},
	codeWebhookUnreachable:     {400, "webhook_unreachable"},
	codeInvalidClient:          {401, "invalid_client"},
	codeAllRefused:             {403, "all_refused"},
	codeNotFound:               {404, "not_found"},
	codeUnknownEntity:          {404, "unknown_entity"},
	codeMethodNotAllowed:       {405, "method_not_allowed"},
	codeRequestTooLarge:        {413, "request_too_large"},
	codeUnsupportedMediaType:   {415, "unsupported_media_type"},
	codeTooManyRequests:        {429, "too_many_requests"},
	codeServerError:            {500, "server_error"},
	codeTemporarilyUnavailable: {503, "temporarily_unavailable"},
}

// apiError is an error with its response.
type apiError struct {
	code code
	// description is the text for the client: ASCII without quotes and backslashes
	// (RFC 6749 §5.2), and without any input of the client.
	description string
	// cause is for the host alone; nil where the description is complete.
	cause error
	// retryAfter is the Retry-After field; zero for none.
	retryAfter time.Duration
	// allow is the Allow field of a 405.
	allow string
}

// Error is the error of [Handler.Set] and [Handler.Unset], with what the response to a
// request would have held.
type Error struct {
	// Status is the HTTP status.
	Status int
	// Code is the error code, as in the table of the package documentation.
	Code string
	// Description is the text for the client. It holds no input of the caller.
	Description string
	// RetryAfter is how long to wait before the call is repeated; zero if unknown.
	RetryAfter time.Duration

	cause error
}

// Error returns the code, the description and the cause, which is for the host alone.
func (e *Error) Error() string {
	text := "webhookcfg: " + e.Code + ": " + e.Description
	if e.cause != nil {
		text += ": " + e.cause.Error()
	}
	return text
}

// Unwrap returns the cause; nil where the description is complete. No URL in its text has
// more than scheme, host and port.
func (e *Error) Unwrap() error { return e.cause }

func (e *apiError) status() int { return errorTable[e.code].status }

// invalidRequest is the error of a request that breaks a rule.
func invalidRequest(rule string) *apiError {
	return &apiError{code: codeInvalidRequest, description: rule}
}

// retryLater is the Retry-After of a 503. The length of an outage is unknown, but an
// immediate retry does not help.
const retryLater = time.Second

func unavailable(cause error) *apiError {
	return &apiError{
		code:        codeTemporarilyUnavailable,
		description: "The service cannot complete the request now",
		cause:       cause,
		retryAfter:  retryLater,
	}
}

func serverError(cause error) *apiError {
	return &apiError{code: codeServerError, description: "The server encountered an unexpected condition", cause: cause}
}

func throttled(cause error, wait time.Duration) *apiError {
	return &apiError{
		code:        codeTooManyRequests,
		description: "Too many requests; try again later",
		cause:       cause,
		retryAfter:  max(wait, time.Second),
	}
}

// askedToWait returns the wait that an error of a verifier or a prober asks for.
func askedToWait(err error) (wait time.Duration, ok bool) {
	var waiter interface{ RetryAfter() time.Duration }
	if !errors.As(err, &waiter) {
		return 0, false
	}
	return waiter.RetryAfter(), true
}

// storeError classifies an error of a [Store] or a [Lister].
func storeError(err error) *apiError {
	if errors.Is(err, ErrInvalidArgument) {
		return serverError(err)
	}
	return unavailable(err)
}
