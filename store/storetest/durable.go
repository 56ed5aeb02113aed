package storetest

import (
	"context"
	"fmt"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
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
	p.setValues("values")
	for range 2 {
		p.reopen(e)
		p.expectValues("values")
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

// setValues gives the client what is easily lost where it is written down.
func (p *play) setValues(client string) {
	for n, url := range urls() {
		p.set(client, entityName(n), url)
	}
	for n, entity := range lookalikes() {
		p.set(client+" of names", entity, hookURL(n))
	}
	for n, at := range times() {
		c := webhookcfg.Set(client, webhookcfg.Entity(fmt.Sprint("time ", n)), egress.NewURL(hookURL(n)))
		p.applyAt(c, at)
	}
}

func (p *play) expectValues(client string) {
	for n, url := range urls() {
		p.expectURL(client, entityName(n), override, url)
	}
	for n, entity := range lookalikes() {
		p.expectURL(client+" of names", entity, override, hookURL(n))
	}
	for n, at := range times() {
		p.expectSince(client, fmt.Sprint("time ", n), at)
	}
}
