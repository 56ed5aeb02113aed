package webhookcfg

import (
	"context"
)

// endpoint is one operation, for a caller who has signed in: it returns the body
// of a success, or a fault.
type endpoint func(*exchange, context.Context, match) ([]byte, *fault)

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
	var page Page
	err := x.call(ctx, func() (err error) {
		page, err = x.h.lister.List(ctx, x.event.Client, after, limit)
		return err
	})
	if err != nil {
		return nil, storeFault(err)
	}
	return marshal(newPageJSON(m.action.idKey, page))
}
