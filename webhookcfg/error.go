package webhookcfg

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"example.com/go-webhookcfg/webhookcfg/egress"
)

// code is the error code of a response, with its status.
type code struct {
	status int
	name   string
}

// The error codes of the contract.
var (
	codeInvalidRequest         = code{400, "invalid_request"}
	codeInvalidWebhookURL      = code{400, "invalid_webhook_url"}
	codeWebhookUnreachable     = code{400, "webhook_unreachable"}
	codeInvalidClient          = code{401, "invalid_client"}
	codeAllRefused             = code{403, "all_refused"}
	codeNotFound               = code{404, "not_found"}
	codeUnknownEntity          = code{404, "unknown_entity"}
	codeMethodNotAllowed       = code{405, "method_not_allowed"}
	codeRequestTooLarge        = code{413, "request_too_large"}
	codeUnsupportedMediaType   = code{415, "unsupported_media_type"}
	codeTooManyRequests        = code{429, "too_many_requests"}
	codeServerError            = code{500, "server_error"}
	codeTemporarilyUnavailable = code{503, "temporarily_unavailable"}
)

// codes are all of them.
var codes = []code{
	codeInvalidRequest,
	codeInvalidWebhookURL,
	codeWebhookUnreachable,
	codeInvalidClient,
	codeAllRefused,
	codeNotFound,
	codeUnknownEntity,
	codeMethodNotAllowed,
	codeRequestTooLarge,
	codeUnsupportedMediaType,
	codeTooManyRequests,
	codeServerError,
	codeTemporarilyUnavailable,
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

// policyError classifies an error of [egress.Policy.CheckContext].
func policyError(err error) *apiError {
	rule, refused := errors.AsType[egress.PolicyError](err)
	if !refused {
		return unavailable(err) // the address could not be checked
	}
	text := rule.Error()
	return &apiError{code: codeInvalidWebhookURL, description: strings.ToUpper(text[:1]) + text[1:]}
}

// Error is a refusal or a failure: the response that a client gets, and what methods like
// [Handler.Set] return to your own code. As an [http.Handler], it writes the response, with
// the body {"error":"code","error_description":"text"}. A success has the body
// {"message":"successful"}.
//
//	status  code                     reason
//	400     invalid_request          body, key, identifier, query or path breaks a rule
//	400     invalid_webhook_url      the policy refuses the URL
//	400     webhook_unreachable      the probe failed, for any reason
//	401     invalid_client           no credentials, or not valid ones
//	403     all_refused              AllScope refuses requests that reach all entities
//	403     one of yours             CheckChange or the store refuses the change: see Refusal
//	404     not_found                not a path of the handler
//	404     unknown_entity           EntityExists reports false
//	405     method_not_allowed       the path does not support the method; see Allow
//	413     request_too_large        the body exceeds BodyLimit
//	415     unsupported_media_type   the body is not application/json in UTF-8
//	429     too_many_requests        the verifier or the prober asks to wait; see Retry-After
//	500     server_error             a defect; the cause is logged
//	503     temporarily_unavailable  a part of the service failed, or time ran out
//
// After a 503, the client can't tell whether the change was made, or will be in a moment, but
// it's never made in part. The client should repeat it, and read first if somebody else may
// have changed the webhook since, because a repeat would undo that.
type Error struct {
	// Status is the HTTP status, and Code the error code.
	Status int
	Code   string
	// Description is the text for the client, and names the rule. It never repeats the
	// caller's input.
	Description string
	// RetryAfter is how long you should wait before you try again. It's zero if that's
	// unknown.
	RetryAfter time.Duration

	cause            error
	challenge, allow string // fields of the response
}

// newError returns the error for the host's code, with the cause as the event shows it.
func (h *Handler) newError(e *apiError, cause error) *Error {
	public := &Error{Status: e.code.status, Code: e.code.name, Description: e.description, RetryAfter: e.retryAfter, cause: cause, allow: e.allow}
	if e.code == codeInvalidClient {
		public.challenge = h.challenge
	}
	return public
}

// ServeHTTP responds like the handler does, so the response doesn't show the cause. Use it
// for an error that a method of [Handler] returned.
func (e *Error) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	header := w.Header()
	if e.challenge != "" {
		header.Set("WWW-Authenticate", e.challenge)
	}
	if e.allow != "" {
		header.Set("Allow", e.allow)
	}
	if e.RetryAfter > 0 {
		header.Set("Retry-After", wholeSeconds(e.RetryAfter))
	}
	// The codes and descriptions need no escaping: RFC 6749 §5.2 limits their characters.
	write(w, e.Status, []byte(`{"error":"`+e.Code+`","error_description":"`+e.Description+`"}`), "")
}

// Error returns the code, the description and the cause. Don't show it to clients: the cause
// is for you only.
func (e *Error) Error() string {
	text := "webhookcfg: " + e.Code + ": " + e.Description
	if e.cause != nil {
		text += ": " + e.cause.Error()
	}
	return text
}

// Unwrap returns the cause, or nil if the description says it all. You can log its text: URLs
// in it show scheme, host and port only.
func (e *Error) Unwrap() error { return e.cause }

// wholeSeconds returns a Retry-After that isn't shorter than d.
func wholeSeconds(d time.Duration) string {
	seconds := d / time.Second
	if d%time.Second > 0 {
		seconds++
	}
	return strconv.FormatInt(int64(seconds), 10)
}
