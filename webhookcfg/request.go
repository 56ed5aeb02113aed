package webhookcfg

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"example.com/go-webhookcfg/webhookcfg/egress"
)

// readSet reads the body of a set, and checks the scope and the URL.
func (x *exchange) readSet(m match) (Scope, egress.URL, *apiError) {
	data, e := x.readBody()
	if e != nil {
		return Scope{}, egress.URL{}, e
	}
	body, e := decodeSet(data, m.action.idKey)
	if e != nil {
		return Scope{}, egress.URL{}, e
	}
	x.url = egress.NewURL(body.url)
	scope := All()
	if body.hasEntity {
		scope, e = x.entityScope(body.entity)
	} else {
		e = x.checkAll(m)
	}
	if e != nil {
		return Scope{}, egress.URL{}, e
	}
	x.event.Scope = scope
	if err := x.h.options.Policy.Check(body.url); err != nil {
		return Scope{}, egress.URL{}, invalidURL(err)
	}
	x.event.URL = x.url
	return scope, x.url, nil
}

func invalidURL(err error) *apiError {
	description := "The webhook URL is not allowed"
	var rule egress.PolicyError
	if errors.As(err, &rule) {
		text := rule.Error()
		description = strings.ToUpper(text[:1]) + text[1:]
	}
	return &apiError{code: codeInvalidWebhookURL, description: description}
}

// pathScope returns the scope of the entity that a path names.
func (x *exchange) pathScope(segment string) (Scope, *apiError) {
	id, err := url.PathUnescape(segment)
	if err != nil {
		return Scope{}, invalidRequest(x.h.entityRule)
	}
	// Servers other than net/http reuse the memory of a path for their next request,
	// and a store or an event may retain the identifier.
	return x.entityScope(strings.Clone(id))
}

// checkAll refuses a request for all entities that may have lost an identifier.
func (x *exchange) checkAll(m match) *apiError {
	switch {
	case !pathUnmodified(x.r, m.escaped):
		return invalidRequest(ruleAllPath)
	case x.r.URL.RawQuery != "" || x.r.URL.ForceQuery:
		return invalidRequest(ruleAllQuery)
	}
	return nil
}

// checkUnsetAll also refuses a body, which may hold the identifier.
func (x *exchange) checkUnsetAll(m match) *apiError {
	if e := x.checkAll(m); e != nil {
		return e
	}
	if x.hasBody() {
		return invalidRequest(ruleAllBody)
	}
	return nil
}

const (
	ruleAllPath  = "The path was changed on its way here; it must be sent as it is served"
	ruleAllQuery = "A request that reaches all entities takes no query string"
	ruleAllBody  = "A request that unsets all entities takes no body"
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
	x.bodyRead()
	return data, nil
}

// bodyRead clears the read deadline after the whole body was read: from then on, a
// deadline that passes would look like a client that disconnected.
func (x *exchange) bodyRead() {
	if x.readLimited {
		_ = http.NewResponseController(x.w).SetReadDeadline(time.Time{})
	}
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

// hasBody reports whether the request has a body, or may have one.
func (x *exchange) hasBody() bool {
	if x.r.ContentLength >= 0 || x.r.Body == nil {
		return x.r.ContentLength > 0
	}
	_, err := io.ReadFull(x.r.Body, make([]byte, 1))
	if !errors.Is(err, io.EOF) {
		return true
	}
	x.bodyRead()
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
