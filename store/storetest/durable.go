package storetest

import (
	"fmt"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// many is a number of overrides that exceeds the batches of most stores.
const many = 100

// unnamed is an entity that no change names.
const unnamed = "never-named"

// fill gives the client a base and many overrides, every third of which is off.
func (sc *script) fill(client string) {
	sc.setAll(client, hookURL(0))
	for n := range many {
		if n%3 == 0 {
			sc.unset(client, entityName(n))
		} else {
			sc.set(client, entityName(n), hookURL(n))
		}
	}
}

// wholeChange requires that set of all and unset of all reach every one of many
// overrides.
func wholeChange(sc *script) error {
	sc.fill(client)
	sc.setAll(client, hookURL(-1))
	for n := range many {
		sc.expectURL(client, entityName(n), base, hookURL(-1))
	}
	sc.fill(client)
	sc.unsetAll(client)
	for n := range many {
		sc.expectNone(client, entityName(n))
	}
	return sc.err
}

// seenAtOnce requires that each change is visible to the next Resolve, also if the
// entity was resolved before.
func seenAtOnce(sc *script) error {
	sc.expectNone(client, "e1") // a cached copy of this becomes stale
	for n := range many {
		sc.set(client, entityName(n), hookURL(n))
		sc.expectURL(client, entityName(n), override, hookURL(n))
	}
	for n := range many {
		sc.expectURL(client, entityName(n), override, hookURL(n))
	}
	sc.set(client, "e1", hookURL(-1))
	sc.expectURL(client, "e1", override, hookURL(-1))
	sc.setAll(client, hookURL(-2))
	sc.expectURL(client, "e1", base, hookURL(-2))
	sc.unset(client, "e1")
	sc.expectOff(client, "e1")
	sc.unsetAll(client)
	sc.expectNone(client, "e1")
	return sc.err
}

// keptByReopening requires that the state survives being reopened, twice, and again
// after another change: bases, overrides, entities that are off, empty clients, and
// unusual values.
func keptByReopening(sc *script) error {
	sc.set("no base", "e1", hookURL(1))
	sc.set("unset again", "e1", hookURL(1))
	sc.unset("unset again", "e1")
	sc.fill("emptied")
	sc.unsetAll("emptied")
	sc.fill(client)
	sc.setAll(client, hookURL(-1))
	sc.set(client, "e1", hookURL(1))
	sc.unset(client, "e2")
	sc.setValues("values")
	for range 2 {
		sc.reopen()
		sc.expectValues("values")
		sc.expectURL("no base", "e1", override, hookURL(1))
		sc.expectNone("no base", unnamed)
		sc.expectNone("unset again", "e1")
		sc.expectNone("emptied", "e1")
		sc.expectURL(client, "e1", override, hookURL(1))
		sc.expectOff(client, "e2")
		sc.expectURL(client, "e3", base, hookURL(-1))
		sc.expectURL(client, unnamed, base, hookURL(-1))
	}
	sc.setAll(client, hookURL(-2))
	sc.reopen()
	sc.expectURL(client, "e1", base, hookURL(-2))
	sc.expectURL(client, "e2", base, hookURL(-2))
	return sc.err
}

// setValues gives the client values that encodings may change.
func (sc *script) setValues(client string) {
	for n, url := range urls() {
		sc.set(client, entityName(n), url)
	}
	for n, entity := range lookalikes() {
		sc.set(client+" of names", entity, hookURL(n))
	}
	for n, at := range times() {
		c := webhookcfg.Set(client, webhookcfg.Entity(fmt.Sprint("time ", n)), egress.NewURL(hookURL(n)))
		sc.applyAt(c, at)
	}
}

// expectValues checks for the values of setValues.
func (sc *script) expectValues(client string) {
	for n, url := range urls() {
		sc.expectURL(client, entityName(n), override, url)
	}
	for n, entity := range lookalikes() {
		sc.expectURL(client+" of names", entity, override, hookURL(n))
	}
	for n, at := range times() {
		sc.expectSince(client, fmt.Sprint("time ", n), at)
	}
}
