package webhookcfg

import (
	"log/slog"
	"net/url"
	"strings"

	"example.com/go-webhookcfg/internal/redact"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// Scope is the reach of a change: one entity, or all entities of a client. The zero value is
// invalid, so a missing identifier never means "all" by accident.
type Scope struct {
	all    bool
	entity string
}

// All is the scope of every entity of a client, including those that nobody has named yet.
func All() Scope { return Scope{all: true} }

// Entity is the scope of one entity. Entity("") is the zero Scope, which is invalid.
func Entity(id string) Scope { return Scope{entity: id} }

// IsAll reports whether s reaches every entity of the client.
func (s Scope) IsAll() bool { return s.all }

// Entity returns the identifier of the entity that s reaches. It's "" if s reaches all of
// them, or is invalid.
func (s Scope) Entity() string { return s.entity }

// String returns "all", "entity e1" or "invalid".
func (s Scope) String() string {
	switch {
	case s.all:
		return "all"
	case s.entity != "":
		return "entity " + s.entity
	default:
		return "invalid"
	}
}

// LogValue implements [slog.LogValuer]. Logs show the same text as String, without characters
// that a log can't show. Only identifiers in a syntax of your own can have those.
func (s Scope) LogValue() slog.Value { return slog.StringValue(redact.Printable(s.String())) }

// AllScope says which requests over HTTP can reach all entities of a client. A DELETE for all
// entities with a body is refused in any case (400), since a body could name an entity. Only
// the chunked body of an HTTP/1.0 request isn't seen, because net/http drops that.
type AllScope uint8

const (
	// AllScopeAsSpecified is the default. It also serves a DELETE of the path with an empty
	// identifier, "…/configure-webhook/". Clients and proxies that lose an identifier send
	// that.
	AllScopeAsSpecified AllScope = iota
	// AllScopeExact refuses the path with an empty identifier (400).
	AllScopeExact
	// AllScopeRefused refuses every set and unset of all entities (403).
	AllScopeRefused

	allScopes // the number of values
)

const (
	ruleAllPath  = "A request that reaches all entities must arrive with the path as the client sent it"
	ruleAllQuery = "A request that reaches all entities takes no query string; the id of one entity belongs at the end of the path of a DELETE, and in the body of a POST"
	ruleAllBody  = "A request that unsets all entities takes no body; to unset one entity, put its id at the end of the path"

	ruleEmptyEntity = "The identifier in the path is empty"
)

// allRefused is our own refusal, for [AllScopeRefused].
var allRefused = Refusal{codeAllRefused.name, "This service accepts no request that reaches all entities"}

// checkAll refuses a request for all entities if it could have lost an identifier on its way.
func (q *request) checkAll() *apiError {
	m, o, rt := q.match, &q.h.options, q.h.routes
	switch {
	case o.AllScope == AllScopeRefused:
		return &apiError{code: codeAllRefused, description: allRefused.Description}
	case q.r.URL.RawQuery != "" || q.r.URL.ForceQuery:
		return invalidRequest(ruleAllQuery)
	case !rt.isUnmodified(q.r, m.escaped), o.OriginalTarget != nil && !rt.isTarget(m, o.OriginalTarget(q.r), o.AllScope):
		return invalidRequest(ruleAllPath)
	}
	return nil
}

// checkUnsetAll refuses the same requests as checkAll. It also refuses a body, which may hold
// the identifier, and an empty identifier, unless AllScope allows it.
func (q *request) checkUnsetAll() *apiError {
	if q.match.action.form == formSlash && q.h.options.AllScope == AllScopeExact {
		return invalidRequest(ruleEmptyEntity)
	}
	if e := q.checkAll(); e != nil {
		return e
	}
	if hasBody(q.r) {
		return invalidRequest(ruleAllBody)
	}
	return nil
}

// scope reads and checks the scope of a change. For a set it also reads the URL, which is in
// the same body.
func (q *request) scope() (Scope, *apiError) {
	switch {
	case q.event.Operation == opSet:
		return q.bodyScope()
	case q.match.action.form == formEntity:
		return q.pathScope()
	default:
		q.event.Scope = All() // so the event shows it, even if we refuse it
		return All(), q.checkUnsetAll()
	}
}

// bodyScope reads the body of a set.
func (q *request) bodyScope() (Scope, *apiError) {
	data, e := readJSON(q.w, q.r, q.h.options.BodyLimit)
	if e != nil {
		return Scope{}, e
	}
	body, e := decodeSet(data, q.match.resource.idKey)
	if e != nil {
		return Scope{}, e
	}
	url := egress.NewURL(body.url)
	if e := q.checkSecrets(url.String()); e != nil {
		return Scope{}, e // before the event has the URL, too
	}
	q.url = url
	if body.hasEntity {
		return q.entityScope(body.entity)
	}
	q.event.Scope = All() // so the event shows it, even if we refuse it
	return All(), q.checkAll()
}

// pathScope returns the scope of the entity that a path names.
func (q *request) pathScope() (Scope, *apiError) {
	id, err := url.PathUnescape(q.match.segment)
	if err != nil {
		return Scope{}, invalidRequest(q.h.entities.rule)
	}
	// Servers other than net/http reuse a path's memory for their next request, but a store
	// or an event may keep the identifier.
	return q.entityScope(strings.Clone(id))
}
