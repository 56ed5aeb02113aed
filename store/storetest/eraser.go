package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"

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

// eraseChangesNothing checks that a client with anything set keeps it, and that a client starts
// from nothing after it was erased. Others keep what they have even if their names match as a
// pattern.
func eraseChangesNothing(sc *script, _ admin.Eraser) error {
	setUp := func(client string) {
		sc.setAll(client, hookURL(1))
		sc.set(client, "e1", hookURL(2))
		sc.unset(client, "e2")
	}
	setUp(client)
	sc.set("override", "e1", hookURL(1))
	sc.setAll("base", hookURL(2))
	for _, name := range []string{client, "override", "base", "unknown"} {
		sc.erase(name)
	}
	sc.expectAll("once more")
	names := sc.storable(slices.Concat([]string{"acm", "acme1", "ACME", "acme/", "acme\x00"}, siblings(client), patterns(client)))
	for _, name := range names {
		sc.erase(name)
		setUp(name)
		sc.unsetAll(name)
		sc.erase(name)
		sc.erase(name)
	}
	sc.expectAll("once more")
	for n, name := range names {
		if n%2 > 0 {
			sc.unset(name, "e2")
		} else {
			sc.setAll(name, hookURL(3))
		}
	}
	sc.expectAll("once more")
	return sc.err
}

// eraseLosesNothing sets webhooks of clients with nothing set, and erases the clients at the
// same time.
func eraseLosesNothing(sc *script, _ admin.Eraser) error {
	const rounds = 40
	for n := range rounds {
		name := fmt.Sprint("client ", n%4)
		sc.check(together(3, func(caller int) error {
			sc := sc.fork(n + caller)
			switch {
			case caller > 0:
				sc.erase(name)
			case n%2 > 0:
				sc.setAll(name, hookURL(n))
			default:
				sc.set(name, "e1", hookURL(n))
			}
			return sc.err
		}))
		for _, entity := range []string{"e1", unnamed} {
			sc.expect(name, entity, sc.made.of(name).of(entity))
		}
		sc.unsetAll(name)
	}
	return sc.err
}

// eraseKeepsFeed checks that an old cursor still reports an unset after the client was
// erased, and the client's next change too. It also erases clients whose names match as a
// pattern.
func eraseKeepsFeed(sc *script, c *cursor) error {
	sc.setAll(client, hookURL(1))
	c.expect(client)
	since := c.since
	sc.unsetAll(client)
	for _, name := range append(patterns(client), client) {
		sc.erase(name)
	}
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
		for _, name := range append(patterns(client), client) {
			sc.erase(name)
		}
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
