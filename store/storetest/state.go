package storetest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

const (
	off      = webhookcfg.SourceOff
	base     = webhookcfg.SourceBase
	override = webhookcfg.SourceOverride
)

// setOne checks that set of one gives the entity an override, regardless of its state before,
// and changes no other entity.
func setOne(sc *script) error {
	sc.set(client, "e1", hookURL(1))
	sc.expectURL(client, "e1", override, hookURL(1))
	sc.expectNone(client, "e2")
	sc.set(client, "e1", hookURL(2))
	sc.expectURL(client, "e1", override, hookURL(2))
	sc.setAll(client, hookURL(3))
	sc.set(client, "e1", hookURL(4))
	sc.expectURL(client, "e1", override, hookURL(4))
	sc.expectURL(client, "e2", base, hookURL(3))
	sc.unset(client, "e1")
	sc.set(client, "e1", hookURL(5))
	sc.expectURL(client, "e1", override, hookURL(5))
	sc.set(client, "e2", hookURL(3)) // the URL of the base, but an override
	sc.expectURL(client, "e2", override, hookURL(3))
	return sc.err
}

// setAll checks that set of all makes the URL the base and drops every override for good,
// even if it's off, and even if the base had this URL already.
func setAll(sc *script) error {
	sc.set(client, "e1", hookURL(1))
	sc.setAll(client, hookURL(2))
	sc.expectURL(client, "e1", base, hookURL(2))
	sc.expectURL(client, unnamed, base, hookURL(2))
	sc.set(client, "e1", hookURL(3))
	sc.unset(client, "e2")
	sc.setAll(client, hookURL(4))
	sc.expectURL(client, "e1", base, hookURL(4))
	sc.expectURL(client, "e2", base, hookURL(4))
	sc.expectURL(client, unnamed, base, hookURL(4))
	sc.set(client, "e1", hookURL(5))
	sc.unset(client, "e2")
	sc.setAll(client, hookURL(4)) // the URL of the base, but a change
	sc.expectURL(client, "e2", base, hookURL(4))
	const repetitions = 300 // more than a byte counts
	for range sc.fewer(repetitions) {
		sc.expectURL(client, "e1", base, hookURL(4))
		sc.setAll(client, hookURL(4))
	}
	return sc.err
}

// unsetOne checks that unset of one drops the override if there's no base, and turns the
// entity off if there is a base, with or without an override.
func unsetOne(sc *script) error {
	sc.set(client, "e1", hookURL(1))
	sc.unset(client, "e1")
	sc.expectNone(client, "e1")
	sc.setAll(client, hookURL(2))
	sc.expectURL(client, "e1", base, hookURL(2)) // the override was dropped, not off
	sc.unset(client, "e1")
	sc.expectOff(client, "e1")
	sc.expectURL(client, "e2", base, hookURL(2))
	sc.set(client, "e2", hookURL(3))
	sc.unset(client, "e2")
	sc.expectOff(client, "e2") // the base doesn't apply again
	return sc.err
}

// unsetAll checks that unset of all drops the base and all overrides for good. Nothing of
// them may come back with later changes.
func unsetAll(sc *script) error {
	sc.setAll(client, hookURL(1))
	sc.set(client, "e1", hookURL(2))
	sc.unset(client, "e2")
	sc.unsetAll(client)
	for _, entity := range []string{"e1", "e2", unnamed} {
		sc.expectNone(client, entity)
	}
	sc.set(client, "e1", hookURL(3))
	sc.expectNone(client, "e2")
	sc.unset(client, "e1") // there's no base, so nothing is off
	sc.expectNone(client, "e1")
	sc.setAll(client, hookURL(4))
	sc.expectURL(client, "e2", base, hookURL(4)) // it isn't off any more
	return sc.err
}

// repeated checks that you can make every kind of change twice, with the same result.
func repeated(sc *script) error {
	sc.unset(client, "e1")
	sc.unsetAll(client)
	sc.expectNone(client, "e1")
	for range 2 {
		sc.set(client, "e1", hookURL(1))
		sc.expectURL(client, "e1", override, hookURL(1))
	}
	for range 2 {
		sc.unset(client, "e1")
		sc.expectNone(client, "e1")
	}
	for range 2 {
		sc.setAll(client, hookURL(2))
		sc.expectURL(client, "e1", base, hookURL(2))
	}
	for range 2 {
		sc.unset(client, "e1")
		sc.expectOff(client, "e1")
	}
	for range 2 {
		sc.unsetAll(client)
		sc.expectNone(client, "e1")
	}
	return sc.err
}

// resolveOrder checks that Resolve returns the override, else the base, else the zero
// Webhook.
func resolveOrder(sc *script) error {
	sc.expectNone("unknown", "e1")
	sc.set(client, "e1", hookURL(1))
	sc.expectNone(client, "e2")
	sc.setAll(client, hookURL(2))
	sc.set(client, "e1", hookURL(3))
	sc.unset(client, "e2")
	sc.expectURL(client, "e1", override, hookURL(3))
	sc.expectOff(client, "e2")
	sc.expectURL(client, unnamed, base, hookURL(2))
	return sc.err
}

// sinceKept checks that bases and overrides have the time of their change, to the
// microsecond.
func sinceKept(sc *script) error {
	for _, at := range times() {
		sc.applyAt(webhookcfg.SetChange(client, webhookcfg.All(), egress.NewURL(hookURL(1))), at)
		sc.expectSince(client, unnamed, at)
		sc.setAll(client, hookURL(2))
		sc.applyAt(webhookcfg.SetChange(client, webhookcfg.Entity("e1"), egress.NewURL(hookURL(3))), at)
		sc.applyAt(webhookcfg.UnsetChange(client, webhookcfg.Entity("e2")), at)
		sc.expectSince(client, "e1", at)
		sc.expectSince(client, "e2", at)
		sc.expectSince(client, unnamed, timeOf(sc.now))
	}
	return sc.err
}

// times lists times that a store could get wrong: the zero time, fractions, time zones, and
// years beyond 32 bits of seconds.
func times() []time.Time {
	return []time.Time{
		{},
		time.Unix(0, 0),
		time.Unix(1_767_323_045, 999_999_999),
		time.Unix(1_767_323_045, 123_456_000),
		time.Unix(-1, 1000), // a fraction before the epoch
		time.Date(2026, time.July, 1, 12, 0, 0, 0, time.FixedZone("", 5*60*60+30*60)),
		time.Date(2107, time.January, 1, 0, 0, 0, 0, time.UTC), // past 32 bits of seconds
	}
}

// expectSince checks that the webhook has the given time, to the microsecond. The store can
// round it up or down.
func (sc *script) expectSince(client, entity string, at time.Time) {
	hook := sc.resolve(client, entity)
	late := hook.Since.Sub(at)
	if sc.err == nil && (late <= -time.Microsecond || late >= time.Microsecond || at.IsZero() != hook.Since.IsZero()) {
		sc.fail("Resolve(%q, %q) returned a webhook (%s) with Since %s, want %s, the Time of its change", client, entity, hook.Source, hook.Since, at)
	}
}

// urlKept checks that bases and overrides return a URL byte for byte, even if another client
// or entity has a similar one.
func urlKept(sc *script) error {
	for _, url := range urls() {
		sc.setAll(client, url)
		sc.set(client, "e1", url)
		sc.expectURL(client, "e1", override, url)
		sc.expectURL(client, unnamed, base, url)
	}
	sc.setSimilarURLs()
	sc.expectAll("once more")
	return sc.err
}

// setSimilarURLs sets all similar URLs, alternating between two clients.
func (sc *script) setSimilarURLs() {
	for n, url := range similarURLs() {
		sc.set(fmt.Sprint("receiver ", n%2), entityName(n), url)
	}
}

// clientsIsolated checks that a client's changes don't affect other clients with a similar
// name, a name that matches as a pattern, or a name that means something to the store.
func clientsIsolated(sc *script) error {
	neighbours := sc.storable(slices.Concat([]string{
		"acm", "acme ", "acme/", "acme/e1", "acme1", "ACME", "acme\x00", "acme#e1", "acme:", "acme.e1",
	}, siblings(client), patterns(client), reserved()))
	setUp := func(client string, n int) {
		sc.set(client, "e1", hookURL(0)) // without a base
		sc.unset(client, "e1")
		sc.setAll(client, hookURL(n))
		sc.set(client, "e1", hookURL(-n))
		sc.unset(client, "e2")
	}
	setUp(client, len(neighbours))
	for n, other := range neighbours {
		sc.expectNone(other, unnamed)
		sc.unsetAll(other)
		setUp(other, n)
		sc.expectURL(client, unnamed, base, hookURL(len(neighbours)))
		sc.expectURL(client, "e1", override, hookURL(-len(neighbours)))
		sc.expectOff(client, "e2")
	}
	sc.expectNone("nobody", unnamed)
	sc.expectAll("once more")
	sc.setAll(client, hookURL(0))
	sc.unsetAll(client)
	sc.expectAll("once more")
	return sc.err
}

// namesDiffer checks that names of clients and entities are different if any byte differs,
// and that no client and entity are confused with another pair, or with a base. It sets names
// in one order and unsets them in the other, so that each pattern once comes after the names
// that it matches. In the end it looks at all of them again.
func namesDiffer(sc *script) error {
	names := sc.lookalikes()
	for n, name := range names {
		sc.set("entities", name, hookURL(n))
		sc.setAll(name, hookURL(-n))
	}
	sc.setPairs()
	sc.expectAll("once more")
	for _, name := range slices.Backward(names) {
		sc.expect("entities", name, sc.made.of("entities")[name])
		sc.unset("entities", name)
	}
	sc.expectModel("entities", sc.made.of("entities"), names)
	return sc.err
}

// setPairs sets bases and overrides of pairs of client and entity that are equal, or equal to a
// client, once they are joined. It also sets every entity whose name a store could use for the
// base: a change of that entity would be a change of all.
func (sc *script) setPairs() {
	n := 0
	set := func(client, entity string) {
		if n++; len(sc.storable([]string{client, entity})) == 2 {
			sc.set(client, entity, hookURL(n))
		}
	}
	sc.setAll("a", hookURL(0))
	for _, separator := range separators() {
		set("a", "b"+separator+"c")
		set("a"+separator+"b", "c")
		if len(sc.storable([]string{separator})) > 0 {
			sc.setAll("a"+separator+"b"+separator+"c", hookURL(-n))
		}
		set("a", "b")
	}
	sc.setAll(client, hookURL(0))
	for _, name := range append(reserved(), client) {
		set(client, name)
		set(name, client)
	}
	longClient, longEntity := strings.Repeat("x", 1023), strings.Repeat("x", 299) // and one byte more, as long as a Client.ID can be
	for _, end := range []string{"y", "z"} {
		set(longClient+end, longEntity+"y")
		set(longClient+end, longEntity+"z")
	}
}
