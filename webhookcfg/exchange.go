package webhookcfg

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"example.com/go-webhookcfg/webhookcfg/egress"
)

// exchange is the state of one request.
type exchange struct {
	operation
	w         http.ResponseWriter
	r         *http.Request
	body      *bodyTimer // nil if there is no body
	responded bool       // the response is being written, or was
}

// run authenticates the client, performs the operation and responds, once.
func (x *exchange) run(m match) {
	ctx, cancel := context.WithDeadline(x.r.Context(), x.start.Add(x.h.options.Timeout))
	defer cancel()
	x.body = limitBody(x.w, x.r, x.h.options.Timeout)
	defer x.finish()
	defer x.recover(ctx)
	var body []byte
	e := x.authenticate(ctx)
	if e == nil {
		body, e = x.perform(ctx, m)
	}
	x.respond(ctx, body, e)
}

// finish ends the limit of the body, before the ResponseWriter becomes invalid.
func (x *exchange) finish() {
	defer x.body.stop()
	if x.responded {
		x.body.drain(x.r)
	}
}

// recover responds 500 after a panic in the store, the verifier, the prober or a
// function of the options. After the response was written, as in a panic of OnEvent,
// the panic is only logged.
func (x *exchange) recover(ctx context.Context) {
	value := recover()
	if value == nil {
		return
	}
	// A wrapper that shares calls, such as a cache of sign-ins, wraps the panics of its
	// goroutines; net/http recognizes only the bare value.
	if err, ok := value.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(http.ErrAbortHandler)
	}
	p := x.panicked(value)
	if x.responded {
		x.logPanic(ctx, p) // net/http would drop the response
		return
	}
	defer x.recover(ctx)
	x.respond(ctx, nil, serverError(p))
}

// perform performs the operation for the client that is signed in, and returns the
// body of a success.
func (x *exchange) perform(ctx context.Context, m match) ([]byte, *apiError) {
	if u := x.r.URL; u.RawPath != "" && u.EscapedPath() != u.RawPath {
		return nil, invalidRequest(ruleEscaping)
	}
	switch m.action.route.Operation {
	case opNameSet:
		return success, x.serveSet(ctx, m)
	case opNameUnset:
		return success, x.serveUnset(ctx, m)
	case opNameRead:
		return x.read(ctx, m)
	default:
		return x.list(ctx, m)
	}
}

// authenticate signs the client in.
func (x *exchange) authenticate(ctx context.Context) *apiError {
	id, secret, token, err := basicCredentials(x.r.Header)
	if err != nil {
		return invalidClient(err)
	}
	x.secrets = [...]string{token, secret}
	client, err := x.h.verifier.Verify(ctx, id, secret)
	if err != nil {
		e := verifierError(err)
		if e.code == codeInvalidClient || e.code == codeTooManyRequests {
			x.event.PresentedID = x.presentedID(id, secret)
		}
		return e
	}
	if !validClientID(client.ID) {
		return serverError(errClientID)
	}
	x.event.Client, x.event.Credential, x.event.SecretName = client.ID, id, client.SecretName
	return nil
}

// presentedID returns an id that did not sign in, for events, unless it holds the secret.
func (x *exchange) presentedID(id, secret string) string {
	const limit = 128
	shown := strings.Map(func(r rune) rune {
		if !unicode.IsGraphic(r) {
			return -1
		}
		return r
	}, id)
	if x.h.options.OmitPresentedID || strings.Contains(id, secret) || strings.Contains(shown, secret) {
		return ""
	}
	for len(shown) > limit {
		_, size := utf8.DecodeLastRuneInString(shown)
		shown = shown[:len(shown)-size]
	}
	return shown
}

func (x *exchange) serveSet(ctx context.Context, m match) *apiError {
	scope, e := x.readSet(m)
	if e != nil {
		return e
	}
	return x.set(ctx, scope)
}

func (x *exchange) serveUnset(ctx context.Context, m match) *apiError {
	scope, e := x.unsetScope(m)
	if e != nil {
		return e
	}
	return x.unset(ctx, scope)
}

func (x *exchange) read(ctx context.Context, m match) ([]byte, *apiError) {
	scope, e := x.pathScope(m.segment)
	if e != nil {
		return nil, e
	}
	x.event.Scope = scope
	if e := x.checkConfigured(ctx, scope); e != nil {
		return nil, e
	}
	hook, e := x.resolve(ctx, scope.Entity())
	if e != nil {
		return nil, e
	}
	shown := newWebhookJSON(m.action.idKey, scope.Entity(), hook)
	shown.Source = hook.Source.String()
	if shown.Delivery, e = x.delivery(ctx, scope.Entity(), hook); e != nil {
		return nil, e
	}
	return marshal(shown)
}

func (x *exchange) list(ctx context.Context, m match) ([]byte, *apiError) {
	after, limit, e := x.pageQuery()
	if e != nil {
		return nil, e
	}
	page, err := x.h.lister.List(ctx, x.event.Client, after, limit)
	if err != nil {
		return nil, storeError(err)
	}
	return marshal(newPageJSON(m.action.idKey, page))
}

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

// respond writes the response to a request that reached an operation, and reports the
// event.
func (x *exchange) respond(ctx context.Context, body []byte, e *apiError) {
	x.body.finish(x.r)
	x.conclude(e)
	x.responded = true
	if e == nil {
		write(x.w, http.StatusOK, body, x.scopeField())
	} else {
		x.h.refuse(x.w, e)
	}
	x.report(ctx)
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
