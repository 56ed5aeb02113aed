package storetest

import (
	"context"

	"example.com/go-webhookcfg/webhookcfg"
)

const (
	off      = webhookcfg.SourceOff
	base     = webhookcfg.SourceBase
	override = webhookcfg.SourceOverride
)

func setOne(ctx context.Context, e Env) error {
	p := begin(ctx, e.Store)
	p.set(client, "e1", hookURL(1))
	p.expectURL(client, "e1", override, hookURL(1))
	p.expectNone(client, "e2")
	p.set(client, "e1", hookURL(2))
	p.expectURL(client, "e1", override, hookURL(2))
	p.setAll(client, hookURL(3))
	p.set(client, "e1", hookURL(4))
	p.expectURL(client, "e1", override, hookURL(4))
	p.expectURL(client, "e2", base, hookURL(3))
	p.unset(client, "e1")
	p.set(client, "e1", hookURL(5))
	p.expectURL(client, "e1", override, hookURL(5))
	p.set(client, "e2", hookURL(3)) // the URL of the base, and yet an override
	p.expectURL(client, "e2", override, hookURL(3))
	return p.err
}

func setAll(ctx context.Context, e Env) error {
	p := begin(ctx, e.Store)
	p.set(client, "e1", hookURL(1))
	p.setAll(client, hookURL(2))
	p.expectURL(client, "e1", base, hookURL(2))
	p.expectURL(client, unnamed, base, hookURL(2))
	p.set(client, "e1", hookURL(3))
	p.unset(client, "e2")
	p.setAll(client, hookURL(4))
	p.expectURL(client, "e1", base, hookURL(4))
	p.expectURL(client, "e2", base, hookURL(4))
	p.expectURL(client, unnamed, base, hookURL(4))
	p.set(client, "e1", hookURL(5))
	p.unset(client, "e2")
	p.setAll(client, hookURL(4)) // the base already, and yet a change
	p.expectURL(client, "e1", base, hookURL(4))
	p.expectURL(client, "e2", base, hookURL(4))
	return p.err
}

func unsetOne(ctx context.Context, e Env) error {
	p := begin(ctx, e.Store)
	p.set(client, "e1", hookURL(1))
	p.unset(client, "e1")
	p.expectNone(client, "e1")
	p.setAll(client, hookURL(2))
	p.expectURL(client, "e1", base, hookURL(2)) // dropped, not off
	p.unset(client, "e1")
	p.expectOff(client, "e1")
	p.expectURL(client, "e2", base, hookURL(2))
	p.set(client, "e2", hookURL(3))
	p.unset(client, "e2")
	p.expectOff(client, "e2") // not back to the base
	return p.err
}

func unsetAll(ctx context.Context, e Env) error {
	p := begin(ctx, e.Store)
	p.setAll(client, hookURL(1))
	p.set(client, "e1", hookURL(2))
	p.unset(client, "e2")
	p.unsetAll(client)
	for _, entity := range []string{"e1", "e2", unnamed} {
		p.expectNone(client, entity)
	}
	p.set(client, "e1", hookURL(3))
	p.expectNone(client, "e2")
	p.unset(client, "e1") // the base is gone: nothing is off
	p.expectNone(client, "e1")
	p.setAll(client, hookURL(4))
	p.expectURL(client, "e2", base, hookURL(4)) // what was off does not come back
	return p.err
}

func repeated(ctx context.Context, e Env) error {
	p := begin(ctx, e.Store)
	p.unset(client, "e1")
	p.unsetAll(client)
	p.expectNone(client, "e1")
	for range 2 {
		p.set(client, "e1", hookURL(1))
		p.expectURL(client, "e1", override, hookURL(1))
	}
	for range 2 {
		p.unset(client, "e1")
		p.expectNone(client, "e1")
	}
	for range 2 {
		p.setAll(client, hookURL(2))
		p.expectURL(client, "e1", base, hookURL(2))
	}
	for range 2 {
		p.unset(client, "e1")
		p.expectOff(client, "e1")
	}
	for range 2 {
		p.unsetAll(client)
		p.expectNone(client, "e1")
	}
	return p.err
}

func resolveOrder(ctx context.Context, e Env) error {
	p := begin(ctx, e.Store)
	p.expectNone("unknown", "e1")
	p.set(client, "e1", hookURL(1))
	p.expectNone(client, "e2")
	p.setAll(client, hookURL(2))
	p.set(client, "e1", hookURL(3))
	p.unset(client, "e2")
	p.expectURL(client, "e1", override, hookURL(3))
	p.expectOff(client, "e2")
	p.expectURL(client, unnamed, base, hookURL(2))
	return p.err
}
