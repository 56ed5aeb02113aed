package webhookcfg

import (
	"errors"
	"mime"
	"net/http"
	"strings"
)

// ruleEscaping refuses a path that is not percent-encoded properly. URL.EscapedPath then
// encodes the decoded path, in which "%2f" became a slash, instead of returning the path
// as it was sent.
const ruleEscaping = "The path must be percent-encoded as RFC 3986 specifies"

const (
	ruleAllPath  = "A request that reaches all entities must arrive with the path as the client sent it"
	ruleAllQuery = "A request that reaches all entities takes no query string"
	ruleAllBody  = "A request that unsets all entities takes no body"

	ruleEmptyEntity = "The identifier in the path is empty"
)

const (
	defaultLimit = 100
	maxLimit     = 1000

	ruleQuery = "A list takes the query parameters limit, from 1 to 1000, and after, an identifier, each at most once"
)

const (
	ruleArrival = "The body did not arrive whole and in time"
	ruleMedia   = "The body must be application/json in UTF-8 without a content coding"
)

func tooLarge() *apiError {
	return &apiError{code: codeRequestTooLarge, description: "The body is too large"}
}

func bodyError(err error) *apiError {
	var over *http.MaxBytesError
	if errors.As(err, &over) {
		return tooLarge()
	}
	return &apiError{code: codeInvalidRequest, description: ruleArrival, cause: err}
}

// isJSON reports whether the header declares JSON in UTF-8 without a content coding.
func isJSON(h http.Header) bool {
	for _, coding := range h["Content-Encoding"] {
		if !strings.EqualFold(coding, "identity") {
			return false
		}
	}
	types := h["Content-Type"]
	if len(types) != 1 {
		return false
	}
	if types[0] == "application/json" {
		return true
	}
	media, params, err := mime.ParseMediaType(types[0])
	charset, hasCharset := params["charset"]
	return err == nil && media == "application/json" && (!hasCharset || strings.EqualFold(charset, "utf-8"))
}
