package webhookcfg

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
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

// readJSON reads a body that is declared as JSON.
func readJSON(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, *apiError) {
	if !isJSON(r.Header) {
		return nil, &apiError{code: codeUnsupportedMediaType, description: ruleMedia}
	}
	if r.ContentLength > limit && r.Header.Get("Expect") != "" {
		return nil, tooLarge() // before a 100 response asks for the body
	}
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if err != nil {
		return nil, bodyError(err)
	}
	return data, nil
}

// hasBody reports whether the request has a body, or announces one. ContentLength alone
// does not decide: over HTTP/2 it is 0 also if the field cannot be parsed, and if the
// announced body did not follow. An expectation of 100 is only sent with a body (RFC 9110
// §10.1.1), which a read would ask for.
func hasBody(r *http.Request) bool {
	if r.ContentLength > 0 || r.Header["Expect"] != nil {
		return true
	}
	for _, length := range r.Header["Content-Length"] {
		if length != "0" {
			return true
		}
	}
	if r.Body == nil || r.Body == http.NoBody {
		return false
	}
	_, err := io.ReadFull(r.Body, make([]byte, 1))
	return !errors.Is(err, io.EOF)
}

// pageQuery parses the query of a list as strictly as a body.
func pageQuery(query string, entities entitySyntax) (after string, limit int, e *apiError) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return "", 0, invalidRequest(ruleQuery)
	}
	limit = defaultLimit
	for key, all := range values {
		value := all[0]
		switch {
		case len(all) == 1 && key == "after" && entities.valid(value):
			after = strings.Clone(value) // as in pathScope
		case len(all) == 1 && key == "limit":
			limit, _ = strconv.Atoi(value)
			if limit < 1 || limit > maxLimit || strconv.Itoa(limit) != value {
				return "", 0, invalidRequest(ruleQuery)
			}
		default:
			return "", 0, invalidRequest(ruleQuery)
		}
	}
	return after, limit, nil
}
