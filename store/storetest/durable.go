package storetest

import (
	"fmt"
	"slices"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// Numbers of overrides. Some stores have limits or batches below many.
const (
	some = 20
	many = 200
)

// crowd returns a number of overrides that's above the limits and batches of most stores.
func (sc *script) crowd() int { return sc.fewer(1100) }

// fewer returns n, or a fifth of it in short mode.
func (sc *script) fewer(n int) int {
	if sc.Short {
		return n / 5
	}
	return n
}

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

// concurrently calls do for 0 to count-1 with several scripts, through all handles. Most
// stores are faster this way.
func (sc *script) concurrently(count int, do func(sc *script, n int)) error {
	const callers = 10
	return together(callers, func(n int) error {
		caller := sc.fork(n)
		for ; n < count; n += callers {
			do(caller, n)
		}
		return caller.err
	})
}

// setCrowd gives the client a crowd of overrides.
func (sc *script) setCrowd(client string) {
	sc.check(sc.concurrently(sc.crowd(), func(sc *script, n int) {
		sc.applyAt(webhookcfg.SetChange(client, webhookcfg.Entity(entityName(n)), egress.NewURL(hookURL(n))), timeOf(0))
	}))
}

// crowdOverride returns the nth override of setCrowd.
func crowdOverride(n int) webhookcfg.Override {
	hook := webhookcfg.Webhook{URL: egress.NewURL(hookURL(n)), Source: override, Since: timeOf(0)}
	return webhookcfg.Override{Entity: entityName(n), Webhook: hook}
}

// crowded returns the overrides of setCrowd in byte order.
func (sc *script) crowded() (all []webhookcfg.Override) {
	for n := range sc.crowd() {
		all = append(all, crowdOverride(n))
	}
	slices.SortFunc(all, byEntity)
	return all
}

// expectCrowd checks that the client has the overrides of setCrowd, or none of them if you
// pass a base. It looks at every fifth, in byte order.
func (sc *script) expectCrowd(client string, base webhookcfg.Webhook) {
	const fifth = 5
	all := sc.crowded()
	sc.check(sc.concurrently(len(all)/fifth, func(sc *script, n int) {
		o := all[n*fifth+n%fifth]
		if base.Source != webhookcfg.SourceNone {
			o.Webhook = base
		}
		sc.expect(client, o.Entity, o.Webhook)
	}))
}

// wholeChange checks that set of all and unset of all reach every override of a crowd, and
// that a set of one reaches no other.
func wholeChange(sc *script) error {
	sc.setCrowd(client)
	sc.expectCrowd(client, webhookcfg.Webhook{})
	sc.setAll(client, hookURL(-1))
	sc.expectCrowd(client, sc.resolve(client, unnamed))
	sc.setCrowd("unset")
	sc.unsetAll("unset")
	for n := 0; n < sc.crowd(); n += 5 {
		sc.expectNone("unset", entityName(n))
	}
	sc.fill(client)
	sc.unsetAll(client)
	for n := range many {
		sc.expectNone(client, entityName(n))
	}
	return sc.err
}

// seenAtOnce checks that the next Resolve sees each change, even if the entity was resolved
// before, and regardless of the change's time.
func seenAtOnce(sc *script) error {
	sc.expectNone(client, "e1") // if the store caches this, its copy becomes stale
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
	sc.seenAtAnyTime()
	return sc.err
}

// seenAtAnyTime makes changes that all have the same time, and then changes that are each a
// microsecond or a second earlier than the previous one.
func (sc *script) seenAtAnyTime() {
	set := func(scope webhookcfg.Scope, n int) webhookcfg.Change {
		return webhookcfg.SetChange(client, scope, egress.NewURL(hookURL(n)))
	}
	one, all := webhookcfg.Entity("e1"), webhookcfg.All()
	state, at := make(model), sc.now
	for _, earlier := range []int64{0, 1, 1e6} {
		for _, c := range []webhookcfg.Change{
			set(one, 1), set(one, 2), set(all, 3), set(all, 4), webhookcfg.UnsetChange(client, one), webhookcfg.UnsetChange(client, one),
			set(one, 5), webhookcfg.UnsetChange(client, one), set(one, 6), webhookcfg.UnsetChange(client, all),
		} {
			at -= earlier
			c.Time = timeOf(at)
			sc.applyAt(c, c.Time)
			state = state.after(c)
			sc.expectModel(client, state)
		}
	}
}

// keptByReopening checks that the state survives when you reopen the store, twice, and once
// more after another change. The state has bases, few and many overrides, entities that are
// off, empty clients, and unusual values.
func keptByReopening(sc *script) error {
	sc.set("no base", "e1", hookURL(1))
	sc.set("unset again", "e1", hookURL(1))
	sc.unset("unset again", "e1")
	sc.fill("emptied")
	sc.unsetAll("emptied")
	sc.setCrowd("crowd")
	sc.fill(client)
	sc.setAll(client, hookURL(-1))
	sc.set(client, "e1", hookURL(1))
	sc.unset(client, "e2")
	sc.setValues("values")
	for range 2 {
		sc.reopen()
		sc.expectValues("values")
		sc.expectCrowd("crowd", webhookcfg.Webhook{})
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

// setValues gives the client values that an encoding could change.
func (sc *script) setValues(client string) {
	for n, url := range urls() {
		sc.set(client, entityName(n), url)
	}
	sc.setSimilarURLs()
	for n, entity := range lookalikes() {
		sc.set(client+" of names", entity, hookURL(n))
	}
	for n, at := range times() {
		c := webhookcfg.SetChange(client, webhookcfg.Entity(fmt.Sprint("time ", n)), egress.NewURL(hookURL(n)))
		sc.applyAt(c, at)
	}
}

// expectValues checks for the values of setValues.
func (sc *script) expectValues(client string) {
	for n, url := range urls() {
		sc.expectURL(client, entityName(n), override, url)
	}
	sc.expectSimilarURLs()
	for n, entity := range lookalikes() {
		sc.expectURL(client+" of names", entity, override, hookURL(n))
	}
	for n, at := range times() {
		sc.expectSince(client, fmt.Sprint("time ", n), at)
	}
}
