package storetest

import (
	"context"
	"errors"
	"fmt"

	"example.com/go-webhookcfg/internal/interrupt"
	"example.com/go-webhookcfg/store/admin"
	"example.com/go-webhookcfg/store/cache"
)

// erase erases a client through the next handle.
func (sc *script) erase(client string) {
	if sc.err != nil {
		return
	}
	e, err := optional[admin.Eraser](sc.handles[sc.turn%len(sc.handles)])
	sc.turn++
	sc.steps = append(sc.steps, fmt.Sprintf("erase %q", client))
	if err == nil {
		err = e.Erase(sc.ctx, client)
	}
	sc.check(err)
}

// eraseChangesNothing checks that a client with anything set keeps it, that its neighbours do
// too, and that a client starts from nothing after it was erased.
func eraseChangesNothing(sc *script, _ admin.Eraser) error {
	names := lookalikes()[:20]
	for n, name := range names {
		sc.setAll(name, hookURL(n))
		sc.set(name, "e1", hookURL(n+1))
		sc.unset(name, "e2")
	}
	sc.set("override", "e1", hookURL(1))
	sc.setAll("base", hookURL(2))
	expect := func(from int) {
		for n, name := range names[from:] {
			sc.expectURL(name, unnamed, base, hookURL(from+n))
			sc.expectURL(name, "e1", override, hookURL(from+n+1))
			sc.expectOff(name, "e2")
		}
		sc.expectURL("override", "e1", override, hookURL(1))
		sc.expectURL("base", unnamed, base, hookURL(2))
	}
	for _, name := range append(names, "override", "base", "unknown") {
		sc.erase(name)
	}
	expect(0)
	for n, name := range names[:10] {
		sc.unsetAll(name)
		sc.erase(name)
		sc.erase(name)
		sc.expectNone(name, "e1")
		sc.expectNone(name, "e2")
		expect(n + 1)
	}
	for _, name := range names[:10] {
		sc.unset(name, "e2")
		sc.expectNone(name, "e2")
		sc.setAll(name, hookURL(30))
		for _, entity := range []string{"e1", "e2", unnamed} {
			sc.expectURL(name, entity, base, hookURL(30))
		}
	}
	return sc.err
}

// eraseKeepsFeed checks that an old cursor still reports an unset after the client was
// erased, and the client's next change too.
func eraseKeepsFeed(sc *script, c *cursor) error {
	sc.setAll(client, hookURL(1))
	c.expect(client)
	since := c.since
	sc.unsetAll(client)
	sc.erase(client)
	c.expect(client)
	sc.setAll(client, hookURL(2))
	c.expect(client)
	c.since = since // like a reader that was away
	c.expect(client)
	return sc.err
}

// eraseKeepsVersions checks that every change gives a version that the client never had, even
// if it was erased in between.
func eraseKeepsVersions(sc *script, v cache.Versioner) error {
	var seen seenVersions
	for range 3 {
		for _, change := range changesOf(client) {
			change(sc)
			seen.expectAnother(sc, v)
		}
		sc.erase(client)
	}
	return sc.err
}

// eraseInvalid checks that an empty client is refused.
func eraseInvalid(sc *script, e admin.Eraser) error {
	sc.check(refused("Erase without a client", e.Erase(sc.ctx, "")))
	return sc.err
}

// eraseEndedContext checks that Erase returns an error if the context ended before the call.
// If it ends during the call, no webhook may change.
func eraseEndedContext(sc *script, e admin.Eraser) error {
	sc.setAll("neighbour", hookURL(1))
	sc.setAll(client, hookURL(1))
	sc.unsetAll(client)
	for _, over := range endedContexts(sc.ctx) {
		if err := e.Erase(over, client); err == nil {
			return errors.New("a call of Erase with an ended ctx returned no error: check ctx.Err first")
		}
	}
	sc.check(interrupt.Each(sc.ctx, func(over context.Context) error { return holdsNoURL(e.Erase(over, client)) }))
	sc.expectURL("neighbour", "e1", base, hookURL(1))
	sc.expectNone(client, "e1")
	return sc.err
}
