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

// many overrides are more than a store handles in one go by chance.
const many = 100

// unnamed is an entity that no change ever names.
const unnamed = "never-named"

// fill gives the client a base and many overrides, of which every third is off.
func (p *play) fill(client string) {
	p.setAll(client, hookURL(0))
	for n := range many {
		if n%3 == 0 {
			p.unset(client, entityName(n))
		} else {
			p.set(client, entityName(n), hookURL(n))
		}
	}
}

func wholeChange(ctx context.Context, e Env) error {
	p := begin(ctx, e.Store)
	p.fill(client)
	p.setAll(client, hookURL(-1))
	for n := range many {
		p.expectURL(client, entityName(n), base, hookURL(-1))
	}
	p.fill(client)
	p.unsetAll(client)
	for n := range many {
		p.expectNone(client, entityName(n))
	}
	return p.err
}

func seenAtOnce(ctx context.Context, e Env) error {
	p := begin(ctx, e.Store)
	p.expectNone(client, "e1") // whoever remembers this is stale soon
	for n := range many {
		p.set(client, entityName(n), hookURL(n))
		p.expectURL(client, entityName(n), override, hookURL(n))
	}
	for n := range many {
		p.expectURL(client, entityName(n), override, hookURL(n))
	}
	p.set(client, "e1", hookURL(-1))
	p.expectURL(client, "e1", override, hookURL(-1))
	p.setAll(client, hookURL(-2))
	p.expectURL(client, "e1", base, hookURL(-2))
	p.unset(client, "e1")
	p.expectOff(client, "e1")
	p.unsetAll(client)
	p.expectNone(client, "e1")
	return p.err
}

func keptByReopening(ctx context.Context, e Env) error {
	if err := e.durable(); err != nil {
		return err
	}
	p := begin(ctx, e.Store)
	p.set("no base", "e1", hookURL(1))
	p.set("unset again", "e1", hookURL(1))
	p.unset("unset again", "e1")
	p.fill("emptied")
	p.unsetAll("emptied")
	p.fill(client)
	p.setAll(client, hookURL(-1))
	p.set(client, "e1", hookURL(1))
	p.unset(client, "e2")
	for range 2 {
		p.reopen(e)
		p.expectURL("no base", "e1", override, hookURL(1))
		p.expectNone("no base", unnamed)
		p.expectNone("unset again", "e1")
		p.expectNone("emptied", "e1")
		p.expectURL(client, "e1", override, hookURL(1))
		p.expectOff(client, "e2")
		p.expectURL(client, "e3", base, hookURL(-1))
		p.expectURL(client, unnamed, base, hookURL(-1))
	}
	p.setAll(client, hookURL(-2))
	p.reopen(e)
	p.expectURL(client, "e1", base, hookURL(-2))
	p.expectURL(client, "e2", base, hookURL(-2))
	return p.err
}

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
