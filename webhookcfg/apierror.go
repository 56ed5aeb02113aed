package webhookcfg

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"example.com/go-webhookcfg/internal/redact"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// code is the error code of a response, and a row of errorTable.
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

// apiError is an error, and the response that it gets.
type apiError struct {
	code code
	// description is the text for the client. It's ASCII without quotes and backslashes (RFC
	// 6749 §5.2), and never repeats the client's input.
	description string
	// cause is for the host only. It's nil if the description says it all.
	cause error
	// retryAfter is the Retry-After field, or zero for none.
	retryAfter time.Duration
	// allow is the Allow field of a 405.
	allow string
}

func (e *apiError) status() int { return errorTable[e.code].status }

// invalidRequest is the error of a request that breaks a rule.
func invalidRequest(rule string) *apiError {
	return &apiError{code: codeInvalidRequest, description: rule}
}

// retryLater is the Retry-After of a 503. We can't know how long an outage lasts, but
// retrying at once doesn't help.
const retryLater = time.Second

func unavailable(cause error) *apiError {
	return &apiError{code: codeTemporarilyUnavailable, description: "The service cannot complete the request now", cause: cause, retryAfter: retryLater}
}

func serverError(cause error) *apiError {
	return &apiError{code: codeServerError, description: "The server encountered an unexpected condition", cause: cause}
}

func throttled(cause error, wait time.Duration) *apiError {
	return &apiError{code: codeTooManyRequests, description: "Too many requests; try again later", cause: cause, retryAfter: max(wait, time.Second)}
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

func invalidClient(cause error) *apiError {
	return &apiError{code: codeInvalidClient, description: "Invalid client credentials", cause: cause}
}

// verifierError classifies an error of a [CredentialVerifier]. It withholds the text, which
// may hold the caller's secret in an encoding that we can't search for.
func verifierError(err error) *apiError {
	if wait, ok := askedToWait(err); ok {
		return throttled(withheld(fmt.Sprintf("verifier asks to wait %v", wait), err), wait)
	}
	if err == ErrInvalidCredentials {
		return invalidClient(err)
	}
	if errors.Is(err, ErrInvalidCredentials) {
		return invalidClient(withheld("verifier refused the credentials", err))
	}
	return unavailable(withheld("verifier failed", err))
}

// withheld returns an error that shows only the text, the types of the cause and, if the
// cause has one, its fixed text.
func withheld(text string, cause error) error {
	if fixed, ok := redact.FixedIn(cause); ok {
		text += ": " + fixed.Error()
	}
	return redact.Error(text+" ("+strings.Join(appendTypes(nil, cause), ": ")+")", cause)
}

// appendTypes appends the types of an error and of the errors that it wraps, up to eight.
func appendTypes(types []string, err error) []string {
	if err == nil || len(types) == 8 {
		return types
	}
	types = append(types, fmt.Sprintf("%T", err))
	switch wrapper := err.(type) {
	case interface{ Unwrap() error }:
		return appendTypes(types, wrapper.Unwrap())
	case interface{ Unwrap() []error }:
		for _, err := range wrapper.Unwrap() {
			types = appendTypes(types, err)
		}
	}
	return types
}

// policyError classifies an error of [egress.Policy.CheckContext].
func policyError(err error) *apiError {
	rule, refused := errors.AsType[egress.PolicyError](err)
	if !refused {
		return unavailable(err) // the address could not be checked
	}
	text := rule.Error()
	return &apiError{code: codeInvalidWebhookURL, description: strings.ToUpper(text[:1]) + text[1:]}
}

// panicError is the cause of a 500 after a panic.
type panicError struct {
	text  string
	stack []byte
	abort bool // the value is http.ErrAbortHandler, or wraps it
}

func (p *panicError) Error() string { return "panic: " + p.text }

// isAbort reports whether the operation panicked with [http.ErrAbortHandler]. It also finds a
// panic that a wrapper, such as a cache of sign-ins, moved here from another goroutine.
func (e *apiError) isAbort() bool {
	if e == nil {
		return false
	}
	p, ok := e.cause.(*panicError)
	return ok && p.abort
}
