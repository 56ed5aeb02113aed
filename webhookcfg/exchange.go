package webhookcfg

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"example.com/go-webhookcfg/webhookcfg/egress"
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

// exchange is the state of one request. It reaches an operation unless its route is refused.
type exchange struct {
	operation
	w         http.ResponseWriter
	r         *http.Request
	match     match
	body      *bodyTimer // nil if there is no body
	result    []byte     // the body of the response if the operation succeeds
	responded bool
}

// run performs the operation, responds and reports, once each.
func (x *exchange) run() {
	ctx, cancel := context.WithDeadline(x.r.Context(), x.start.Add(x.h.options.Timeout))
	defer cancel()
	e := x.attempt(ctx, x.perform)
	if e.isAbort() {
		panic(http.ErrAbortHandler) // the bare value, which net/http recognizes
	}
	x.respond(e)
	x.report(ctx)
}

// perform authenticates the client and performs the operation.
func (x *exchange) perform(ctx context.Context) *apiError {
	if e := x.authenticate(ctx); e != nil {
		return e
	}
	if u := x.r.URL; u.RawPath != "" && u.EscapedPath() != u.RawPath {
		return invalidRequest(ruleEscaping)
	}
	switch x.event.Operation {
	case opNameRead:
		return x.read(ctx)
	case opNameList:
		return x.list(ctx)
	}
	scope, e := x.scope()
	if e != nil {
		return e
	}
	x.result = success
	return x.change(ctx, scope)
}

// authenticate signs the client in.
func (x *exchange) authenticate(ctx context.Context) *apiError {
	id, secret, token, err := basicCredentials(x.r.Header)
	if err != nil {
		return invalidClient(err)
	}
	x.secrets[0] = token
	_, e := x.signIn(ctx, id, secret)
	return e
}

func (x *exchange) read(ctx context.Context) *apiError {
	scope, e := x.pathScope()
	if e != nil {
		return e
	}
	hook, e := x.webhook(ctx, scope)
	if e != nil {
		return e
	}
	shown := newWebhookJSON(x.match.resource.idKey, scope.Entity(), hook)
	shown.Source = hook.Source.String()
	if shown.Delivery, e = x.delivery(ctx, scope.Entity(), hook); e != nil {
		return e
	}
	x.result, e = marshal(shown)
	return e
}

func (x *exchange) list(ctx context.Context) *apiError {
	after, limit, e := pageQuery(x.r.URL.RawQuery, x.h.entities)
	if e != nil {
		return e
	}
	page, e := x.page(ctx, after, limit)
	if e != nil {
		return e
	}
	x.result, e = marshal(newPageJSON(x.match.resource.idKey, page))
	return e
}

// scope reads and checks the scope of a change; the body of a set also holds the URL.
func (x *exchange) scope() (Scope, *apiError) {
	switch {
	case x.event.Operation == opNameSet:
		return x.bodyScope()
	case x.match.action.form == formEntity:
		return x.pathScope()
	default:
		x.event.Scope = All() // also if it is refused
		return All(), x.checkUnsetAll()
	}
}

// bodyScope reads the body of a set.
func (x *exchange) bodyScope() (Scope, *apiError) {
	data, e := readJSON(x.w, x.r, x.h.options.BodyLimit)
	if e != nil {
		return Scope{}, e
	}
	x.body.stop()
	body, e := decodeSet(data, x.match.resource.idKey)
	if e != nil {
		return Scope{}, e
	}
	x.url = egress.NewURL(body.url)
	if body.hasEntity {
		return x.h.entities.scope(body.entity)
	}
	x.event.Scope = All() // also if it is refused
	return All(), x.checkAll()
}

// pathScope returns the scope of the entity that a path names.
func (x *exchange) pathScope() (Scope, *apiError) {
	id, err := url.PathUnescape(x.match.segment)
	if err != nil {
		return Scope{}, invalidRequest(x.h.entities.rule)
	}
	// Servers other than net/http reuse the memory of a path for their next request,
	// and a store or an event may retain the identifier.
	return x.h.entities.scope(strings.Clone(id))
}

// checkAll refuses a request for all entities that may have lost an identifier.
func (x *exchange) checkAll() *apiError {
	m, o, rt := x.match, &x.h.options, x.h.routes
	switch {
	case o.AllScope == AllScopeRefused:
		return &apiError{code: codeAllRefused, description: "This service accepts no request that reaches all entities"}
	case x.r.URL.RawQuery != "" || x.r.URL.ForceQuery:
		return invalidRequest(ruleAllQuery)
	case !rt.isUnmodified(x.r, m.escaped), o.OriginalTarget != nil && !rt.isTarget(m, o.OriginalTarget(x.r), o.AllScope):
		return invalidRequest(ruleAllPath)
	}
	return nil
}

// checkUnsetAll also refuses a body, which may hold the identifier, and an empty
// identifier, unless it is served.
func (x *exchange) checkUnsetAll() *apiError {
	if x.match.action.form == formSlash && x.h.options.AllScope == AllScopeExact {
		return invalidRequest(ruleEmptyEntity)
	}
	if e := x.checkAll(); e != nil {
		return e
	}
	if hasBody(x.r) {
		return invalidRequest(ruleAllBody)
	}
	x.body.stop()
	return nil
}

// respond writes the response: an error, or the result.
func (x *exchange) respond(e *apiError) {
	x.body.beforeResponse()
	if e == nil {
		write(x.w, http.StatusOK, x.result, x.scopeField())
	} else {
		x.h.newError(e, nil).ServeHTTP(x.w, x.r)
	}
	x.responded = true
}

// scopeField returns the Webhook-Scope field of a change that was made, from which a client
// that lost its identifier on the way learns that it reached all entities; "" for a read.
func (x *exchange) scopeField() string {
	switch {
	case x.event.Operation != opNameSet && x.event.Operation != opNameUnset:
		return ""
	case x.event.Scope.IsAll():
		return "all"
	default:
		return "entity"
	}
}
