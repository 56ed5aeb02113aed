package webhookcfg

import (
	"errors"
	"time"
)

// code is an error code of the wire, one row of the table below.
type code uint8

const (
	codeInvalidRequest code = iota
	codeInvalidWebhookURL
	codeWebhookUnreachable
	codeInvalidClient
	codeNotFound
	codeUnknownEntity
	codeMethodNotAllowed
	codeRequestTooLarge
	codeUnsupportedMediaType
	codeTooManyRequests
	codeServerError
	codeTemporarilyUnavailable
)

// errorTable is the one table from error codes to what the caller sees.
var errorTable = [...]struct {
	status int
	name   string
}{
	codeInvalidRequest:         {400, "invalid_request"},
	codeInvalidWebhookURL:      {400, "invalid_webhook_url"},
	codeWebhookUnreachable:     {400, "webhook_unreachable"},
	codeInvalidClient:          {401, "invalid_client"},
	codeNotFound:               {404, "not_found"},
	codeUnknownEntity:          {404, "unknown_entity"},
	codeMethodNotAllowed:       {405, "method_not_allowed"},
	codeRequestTooLarge:        {413, "request_too_large"},
	codeUnsupportedMediaType:   {415, "unsupported_media_type"},
	codeTooManyRequests:        {429, "too_many_requests"},
	codeServerError:            {500, "server_error"},
	codeTemporarilyUnavailable: {503, "temporarily_unavailable"},
}

// apiError is a refusal on its way to the caller.
type apiError struct {
	code code
	// description is what the caller reads: ASCII without quotes and backslashes
	// (RFC 6749 §5.2), and never anything that the caller sent.
	description string
	// cause is for the host alone; nil where the description says it all.
	cause error
	// retryAfter is how long to wait before the next try; zero for no advice.
	retryAfter time.Duration
	// allow is the Allow field of a 405.
	allow string
}

func (e *apiError) status() int { return errorTable[e.code].status }

// invalidRequest is the refusal of a request that breaks the named rule.
func invalidRequest(rule string) *apiError {
	return &apiError{code: codeInvalidRequest, description: rule}
}

// retryLater is what the 503s advise: the library cannot know how long an
// outage lasts, only that asking again at once does not help.
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
	return &apiError{code: codeServerError, description: "The service met an unexpected condition", cause: cause}
}

func throttled(cause error, wait time.Duration) *apiError {
	return &apiError{
		code:        codeTooManyRequests,
		description: "Too many requests; try again later",
		cause:       cause,
		retryAfter:  max(wait, time.Second),
	}
}

// askedToWait finds the wait that a verifier or a prober asks of the caller.
func askedToWait(err error) (wait time.Duration, ok bool) {
	var waiter interface{ RetryAfter() time.Duration }
	if !errors.As(err, &waiter) {
		return 0, false
	}
	return waiter.RetryAfter(), true
}

// storeError sorts the errors of a [Store] and a [Lister].
func storeError(err error) *apiError {
	if errors.Is(err, ErrInvalidArgument) {
		return serverError(err)
	}
	return unavailable(err)
}
