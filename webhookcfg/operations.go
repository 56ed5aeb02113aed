package webhookcfg

import (
	"context"
	"fmt"

	"example.com/go-webhookcfg/webhookcfg/egress"
)

// operate performs the operation for the client that is signed in, and returns the
// body of the response to a success, or a fault.
func (x *exchange) operate(ctx context.Context, m match) ([]byte, *fault) {
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

// set is decode, check, apply, in this order: the store sees nothing unchecked.
func (x *exchange) set(ctx context.Context, m match) ([]byte, *fault) {
	scope, target, f := x.readSet(m)
	if f != nil {
		return nil, f
	}
	if f := x.checkKnown(ctx, scope, unknownRefused); f != nil {
		return nil, f
	}
	if f := x.probe(ctx, target); f != nil {
		return nil, f
	}
	return x.apply(ctx, Set(x.event.Client, scope, target))
}

func (x *exchange) unset(ctx context.Context, m match) ([]byte, *fault) {
	scope := All()
	var f *fault
	if m.action.form == formEntity {
		scope, f = x.pathScope(m.segment)
	} else {
		f = x.checkUnsetAll(m)
	}
	if f != nil {
		return nil, f
	}
	x.event.Scope = scope
	if f := x.checkKnown(ctx, scope, unknownWithEntry); f != nil {
		return nil, f
	}
	return x.apply(ctx, Unset(x.event.Client, scope))
}

func (x *exchange) read(ctx context.Context, m match) ([]byte, *fault) {
	scope, f := x.pathScope(m.segment)
	if f != nil {
		return nil, f
	}
	x.event.Scope = scope
	if f := x.checkKnown(ctx, scope, unknownWithEntry); f != nil {
		return nil, f
	}
	hook, f := x.resolve(ctx, scope.Entity())
	if f != nil {
		return nil, f
	}
	shown := newWebhookJSON(m.action.idKey, scope.Entity(), hook)
	shown.Source = hook.Source.String()
	return marshal(shown)
}

func (x *exchange) list(ctx context.Context, m match) ([]byte, *fault) {
	after, limit, f := x.pageQuery()
	if f != nil {
		return nil, f
	}
	page, err := x.h.lister.List(ctx, x.event.Client, after, limit)
	if err != nil {
		return nil, storeFault(err)
	}
	return marshal(newPageJSON(m.action.idKey, page))
}

// unknownPolicy says what becomes of an entity that the catalogue does not know.
type unknownPolicy uint8

const (
	// unknownRefused: a set needs a valid entity.
	unknownRefused unknownPolicy = iota
	// unknownWithEntry: what was set while the entity was valid can still be read
	// and unset.
	unknownWithEntry
)

// checkKnown asks the host's catalogue about the one entity of a scope.
func (x *exchange) checkKnown(ctx context.Context, scope Scope, unknown unknownPolicy) *fault {
	if x.h.catalogue == nil || scope.IsAll() {
		return nil
	}
	known, err := x.h.catalogue(ctx, x.event.Client, scope.Entity())
	if err != nil {
		return unavailable(fmt.Errorf("catalogue: %w", err))
	}
	if known {
		return nil
	}
	if unknown == unknownWithEntry {
		hook, f := x.resolve(ctx, scope.Entity())
		if f != nil {
			return f
		}
		if hook.Source == SourceOverride || hook.Source == SourceOff {
			return nil
		}
	}
	return &fault{code: codeUnknownEntity, description: "There is no such entity"}
}

func (x *exchange) resolve(ctx context.Context, entity string) (Webhook, *fault) {
	hook, err := x.h.store.Resolve(ctx, x.event.Client, entity)
	if err != nil {
		return Webhook{}, storeFault(err)
	}
	return hook, nil
}

// probe checks that the target can be reached, as the host wants it.
func (x *exchange) probe(ctx context.Context, target egress.URL) *fault {
	if x.h.probeMode == ProbeOff {
		return nil
	}
	probeCtx, cancel := context.WithTimeout(ctx, x.h.probeTimeout)
	defer cancel()
	err := x.h.prober.Probe(probeCtx, x.event.Client, target)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil: // not the target's fault
		return unavailable(err)
	case x.h.probeMode == ProbeWarn:
		x.event.Err = x.redactedError(err)
		return nil
	}
	if wait, ok := askedToWait(err); ok {
		return throttled(err, wait)
	}
	return &fault{code: codeWebhookUnreachable, description: "The webhook URL could not be reached", cause: err}
}

// apply hands the checked change to the store.
func (x *exchange) apply(ctx context.Context, c Change) ([]byte, *fault) {
	c.Time = x.start
	if x.h.now != nil {
		c.Time = x.h.now()
	}
	if err := ctx.Err(); err != nil {
		return nil, unavailable(err)
	}
	if err := x.h.store.Apply(ctx, c); err != nil {
		return nil, storeFault(err)
	}
	return success, nil
}
