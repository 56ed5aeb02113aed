package webhookcfg

import (
	"errors"
	"net/url"
	"strconv"
	"strings"

	"example.com/go-webhookcfg/webhookcfg/egress"
)

// readSet reads and judges everything that a set says.
func (x *exchange) readSet(m match) (Scope, egress.URL, *fault) {
	buf := x.h.bodies.Get().(*[]byte)
	defer x.h.bodies.Put(buf)
	data, f := x.readBody(buf)
	if f != nil {
		return Scope{}, egress.URL{}, f
	}
	body, f := decodeSet(data, m.action.idKey)
	if f != nil {
		return Scope{}, egress.URL{}, f
	}
	x.url = egress.NewURL(body.url)
	scope := All()
	if body.hasEntity {
		scope, f = x.entityScope(body.entity)
	} else {
		f = x.checkAll(m)
	}
	if f != nil {
		return Scope{}, egress.URL{}, f
	}
	x.event.Scope = scope
	if err := x.h.policy.Check(body.url); err != nil {
		return Scope{}, egress.URL{}, invalidURL(err)
	}
	x.event.URL = x.url
	return scope, x.url, nil
}

func invalidURL(err error) *fault {
	description := "The webhook URL is not allowed"
	var rule egress.PolicyError
	if errors.As(err, &rule) {
		text := rule.Error()
		description = strings.ToUpper(text[:1]) + text[1:]
	}
	return &fault{code: codeInvalidWebhookURL, description: description}
}

// pathScope is the scope of the one entity that a path names.
func (x *exchange) pathScope(segment string) (Scope, *fault) {
	id, err := url.PathUnescape(segment)
	if err != nil {
		return Scope{}, invalidRequest(x.h.entityRule)
	}
	// Servers other than net/http reuse the memory of a path for their next request,
	// and a store or a hook may keep the identifier.
	return x.entityScope(strings.Clone(id))
}

func (x *exchange) entityScope(id string) (Scope, *fault) {
	if !x.h.validEntity(id) {
		return Scope{}, invalidRequest(x.h.entityRule)
	}
	return Entity(id), nil
}

// checkAll refuses a request that may have lost the identifier it was to name.
func (x *exchange) checkAll(m match) *fault {
	switch {
	case !arrivedAs(x.r, m.escaped):
		return invalidRequest(ruleAllPath)
	case x.r.URL.RawQuery != "" || x.r.URL.ForceQuery:
		return invalidRequest(ruleAllQuery)
	}
	return nil
}

// checkUnsetAll also refuses a body, in which the identifier may be.
func (x *exchange) checkUnsetAll(m match) *fault {
	if f := x.checkAll(m); f != nil {
		return f
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

// pageQuery reads the query of a list as strictly as a body is read.
func (x *exchange) pageQuery() (after string, limit int, f *fault) {
	values, err := url.ParseQuery(x.r.URL.RawQuery)
	if err != nil {
		return "", 0, invalidRequest(ruleQuery)
	}
	limit = defaultLimit
	for key, all := range values {
		value := all[0]
		switch {
		case len(all) == 1 && key == "after" && x.h.validEntity(value):
			after = strings.Clone(value) // as the one of a path
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
