package webhookcfg

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"example.com/go-webhookcfg/webhookcfg/egress"
)

// readSet reads the body of a set, and checks the scope.
func (x *exchange) readSet(m match) (Scope, *apiError) {
	data, e := x.readBody()
	if e != nil {
		return Scope{}, e
	}
	body, e := decodeSet(data, m.action.idKey)
	if e != nil {
		return Scope{}, e
	}
	x.url = egress.NewURL(body.url)
	if body.hasEntity {
		return x.h.entityScope(body.entity)
	}
	x.event.Scope = All() // also if it is refused
	return All(), x.checkAll(m)
}

// unsetScope checks the scope of an unset.
func (x *exchange) unsetScope(m match) (Scope, *apiError) {
	if m.action.form == formEntity {
		return x.pathScope(m.segment)
	}
	x.event.Scope = All()
	return All(), x.checkUnsetAll(m)
}

// pathScope returns the scope of the entity that a path names.
func (x *exchange) pathScope(segment string) (Scope, *apiError) {
	id, err := url.PathUnescape(segment)
	if err != nil {
		return Scope{}, invalidRequest(x.h.entityRule)
	}
	// Servers other than net/http reuse the memory of a path for their next request,
	// and a store or an event may retain the identifier.
	return x.h.entityScope(strings.Clone(id))
}

// checkAll refuses a request for all entities that may have lost an identifier.
func (x *exchange) checkAll(m match) *apiError {
	o := &x.h.options
	switch {
	case o.AllScope == AllScopeRefused:
		return &apiError{code: codeAllRefused, description: "This service accepts no request that reaches all entities"}
	case x.r.URL.RawQuery != "" || x.r.URL.ForceQuery:
		return invalidRequest(ruleAllQuery)
	case !pathUnmodified(x.r, m.escaped), o.OriginalTarget != nil && !m.resource.isTarget(o.OriginalTarget(x.r), m.action.route.Operation, o.AllScope):
		return invalidRequest(ruleAllPath)
	}
	return nil
}

// checkUnsetAll also refuses a body, which may hold the identifier, and an empty
// identifier, unless it is served.
func (x *exchange) checkUnsetAll(m match) *apiError {
	if m.action.form == formSlash && x.h.options.AllScope == AllScopeExact {
		return invalidRequest(ruleEmptyEntity)
	}
	if e := x.checkAll(m); e != nil {
		return e
	}
	if x.hasBody() {
		return invalidRequest(ruleAllBody)
	}
	return nil
}

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

// pageQuery parses the query of a list as strictly as a body.
func (x *exchange) pageQuery() (after string, limit int, e *apiError) {
	values, err := url.ParseQuery(x.r.URL.RawQuery)
	if err != nil {
		return "", 0, invalidRequest(ruleQuery)
	}
	limit = defaultLimit
	for key, all := range values {
		value := all[0]
		switch {
		case len(all) == 1 && key == "after" && x.h.validEntity(value):
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

const (
	ruleArrival = "The body did not arrive whole and in time"
	ruleMedia   = "The body must be application/json in UTF-8 without a content coding"
)

// readBody reads the body of a set.
func (x *exchange) readBody() ([]byte, *apiError) {
	if !isJSON(x.r.Header) {
		return nil, &apiError{code: codeUnsupportedMediaType, description: ruleMedia}
	}
	if x.r.ContentLength > x.h.options.BodyLimit && x.r.Header.Get("Expect") != "" {
		return nil, tooLarge() // before a 100 response asks for the body
	}
	data, err := io.ReadAll(http.MaxBytesReader(x.w, x.r.Body, x.h.options.BodyLimit))
	if err != nil {
		return nil, bodyError(err)
	}
	x.body.stop()
	return data, nil
}

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

// hasBody reports whether the request has a body, or announces one. ContentLength alone
// does not decide: over HTTP/2 it is 0 also if the field cannot be parsed, and if the
// announced body did not follow. An expectation of 100 is only sent with a body (RFC 9110
// §10.1.1), which a read would ask for.
func (x *exchange) hasBody() bool {
	if x.r.ContentLength > 0 || x.r.Header["Expect"] != nil {
		return true
	}
	for _, length := range x.r.Header["Content-Length"] {
		if length != "0" {
			return true
		}
	}
	if x.r.Body == nil || x.r.Body == http.NoBody {
		return false
	}
	_, err := io.ReadFull(x.r.Body, make([]byte, 1))
	if !errors.Is(err, io.EOF) {
		return true
	}
	x.body.stop()
	return false
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
