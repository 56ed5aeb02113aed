package webhookcfg

import (
	"context"
	"fmt"

	"example.com/go-webhookcfg/webhookcfg/egress"
)

// operate performs the operation for the client that is signed in, and returns the
// body of a success.
func (x *exchange) operate(ctx context.Context, m match) ([]byte, *apiError) {
	if u := x.r.URL; u.RawPath != "" && u.EscapedPath() != u.RawPath {
		return nil, invalidRequest(ruleEscaping)
	}
	switch m.action.route.Operation {
	case opNameSet:
		return x.set(ctx, m)
	case opNameUnset:
		return x.unset(ctx, m)
	case opNameRead:
		return x.read(ctx, m)
	default:
		return x.list(ctx, m)
	}
}

// set decodes, checks and applies, in this order: the store sees no unchecked change.
func (x *exchange) set(ctx context.Context, m match) ([]byte, *apiError) {
	scope, target, e := x.readSet(m)
	if e != nil {
		return nil, e
	}
	if e := x.checkExists(ctx, scope); e != nil {
		return nil, e
	}
	if e := x.probe(ctx, target); e != nil {
		return nil, e
	}
	return x.apply(ctx, Set(x.event.Client, scope, target))
}

func (x *exchange) unset(ctx context.Context, m match) ([]byte, *apiError) {
	scope := All()
	var e *apiError
	if m.action.form == formEntity {
		scope, e = x.pathScope(m.segment)
	} else {
		e = x.checkUnsetAll(m)
	}
	if e != nil {
		return nil, e
	}
	x.event.Scope = scope
	if e := x.checkConfigured(ctx, scope); e != nil {
		return nil, e
	}
	return x.apply(ctx, Unset(x.event.Client, scope))
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

// checkExists refuses a scope of one entity that the host does not know.
func (x *exchange) checkExists(ctx context.Context, scope Scope) *apiError {
	if x.h.options.EntityExists == nil || scope.IsAll() {
		return nil
	}
	known, err := x.h.options.EntityExists(ctx, x.event.Client, scope.Entity())
	switch {
	case err != nil:
		return unavailable(fmt.Errorf("entity exists: %w", err))
	case !known:
		return &apiError{code: codeUnknownEntity, description: "There is no such entity"}
	}
	return nil
}

// checkConfigured is checkExists, but an override that was set while the entity existed
// can still be read and unset.
func (x *exchange) checkConfigured(ctx context.Context, scope Scope) *apiError {
	refusal := x.checkExists(ctx, scope)
	if refusal == nil || refusal.code != codeUnknownEntity {
		return refusal
	}
	hook, e := x.resolve(ctx, scope.Entity())
	if e != nil {
		return e
	}
	if hook.Source == SourceOverride || hook.Source == SourceOff {
		return nil
	}
	return refusal
}

func (x *exchange) resolve(ctx context.Context, entity string) (Webhook, *apiError) {
	hook, err := x.h.store.Resolve(ctx, x.event.Client, entity)
	if err != nil {
		return Webhook{}, storeError(err)
	}
	return hook, nil
}

// probe checks that the target can be reached, as the mode specifies.
func (x *exchange) probe(ctx context.Context, target egress.URL) *apiError {
	if x.h.options.ProbeMode == ProbeOff {
		return nil
	}
	probeCtx, cancel := context.WithTimeout(ctx, x.h.options.ProbeTimeout)
	defer cancel()
	err := x.h.options.Prober.Probe(probeCtx, x.event.Client, target)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil: // the request ended, not the probe alone
		return unavailable(err)
	case x.h.options.ProbeMode == ProbeWarn:
		x.event.Err = x.redactedError(err)
		return nil
	}
	if wait, ok := askedToWait(err); ok {
		return throttled(err, wait)
	}
	return &apiError{code: codeWebhookUnreachable, description: "The webhook URL could not be reached", cause: err}
}

// apply applies the checked change, unless the request has ended.
func (x *exchange) apply(ctx context.Context, c Change) ([]byte, *apiError) {
	c.Time = x.start
	if x.h.options.Now != nil {
		c.Time = x.h.options.Now()
	}
	if err := ctx.Err(); err != nil {
		return nil, unavailable(err)
	}
	if err := x.h.store.Apply(ctx, c); err != nil {
		return nil, storeError(err)
	}
	return success, nil
}
