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
	many = 100
)

// crowd returns a number of overrides that's above the limits and batches of most stores. With
// several handles there are fewer, since limits and batches are the same.
func (sc *script) crowd() int { return sc.fewer(1100) / len(sc.handles) / len(sc.handles) }

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

// setCrowd gives the client a crowd of overrides, all with long URLs and the same time.
func (sc *script) setCrowd(client string) {
	sc.check(sc.concurrently(sc.crowd(), func(sc *script, n int) {
		o := crowdOverride(n)
		sc.applyAt(webhookcfg.SetChange(client, webhookcfg.Entity(o.Entity), o.Webhook.URL), o.Webhook.Since)
	}))
}

// crowdOverride returns the nth override of setCrowd.
func crowdOverride(n int) webhookcfg.Override {
	url := egress.NewURL(longest(hookURL(n) + "/"))
	return webhookcfg.Override{Entity: entityName(n), Webhook: webhookcfg.Webhook{URL: url, Source: override, Since: timeOf(0)}}
}

// crowded returns the overrides of setCrowd in byte order.
func (sc *script) crowded() (all []webhookcfg.Override) {
	for n := range sc.crowd() {
		all = append(all, crowdOverride(n))
	}
	slices.SortFunc(all, byEntity)
	return all
}

// wholeChange checks that set of all and unset of all reach every override of a crowd, and
// that a set of one reaches no other.
func wholeChange(sc *script) error {
	sc.setCrowd("set")
	sc.setCrowd("unset")
	sc.expectAll("once more")
	sc.setAll("set", hookURL(-1))
	sc.unsetAll("unset")
	sc.expectAll("once more")
	sc.fill(client)
	sc.unsetAll(client)
	sc.expectModel(client, sc.made.of(client), sc.made.of(client).sample(many))
	return sc.err
}

// seenAtOnce checks that the next Resolve sees each change, even if the entity was resolved
// before, and regardless of the change's time.
func seenAtOnce(sc *script) error {
	sc.expectNone(client, "e1") // if the store caches this, its copy becomes stale
	for n := range some {
		sc.set(client, entityName(n), hookURL(n))
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
	state, at := newModel(), sc.now
	for _, earlier := range []int64{0, 1, 1e6} {
		for _, c := range []webhookcfg.Change{
			set(one, 1), set(one, 2), set(all, 3), set(all, 4), webhookcfg.UnsetChange(client, one), webhookcfg.UnsetChange(client, one),
			set(one, 5), webhookcfg.UnsetChange(client, one), set(one, 6), webhookcfg.UnsetChange(client, all),
		} {
			at -= earlier
			c.Time = timeOf(at)
			sc.applyAt(c, c.Time)
			state = state.after(c)
			sc.expectModel(client, state, universe)
		}
	}
}

// valuesKept checks that unusual values survive when you reopen the store, and the rest of the
// state with them.
func valuesKept(sc *script) error {
	sc.setValues()
	return kept(sc)
}

// kept checks that the state survives when you reopen the store, and once more after other
// changes. The state has bases, few and many overrides, entities that are off, and empty
// clients.
func kept(sc *script) error {
	sc.set("no base", "e1", hookURL(1))
	sc.set("unset again", "e1", hookURL(1))
	sc.unset("unset again", "e1")
	sc.fill("emptied")
	sc.unsetAll("emptied")
	sc.setCrowd("crowd")
	sc.setAll(client, hookURL(-1))
	sc.set(client, "e1", hookURL(1))
	sc.unset(client, "e2")
	sc.reopen()
	sc.expectAll("after opening the store again")
	sc.setAll(client, hookURL(-2))
	sc.unset("no base", "e1")
	sc.set("set later", "e1", hookURL(1))
	sc.reopen()
	sc.expectAll("after opening the store again")
	return sc.err
}

// setValues sets values that an encoding could change: URLs and times, both of bases and of
// overrides, and names of entities and of clients.
func (sc *script) setValues() {
	for n, url := range urls() {
		sc.setAll(fmt.Sprint("base ", n), url)
		sc.set("values", entityName(n), url)
	}
	sc.setSimilarURLs()
	for n, name := range sc.lookalikes() {
		sc.set("names", name, hookURL(n))
		sc.setAll(name, hookURL(-n))
	}
	for n, at := range times() {
		for _, scope := range []webhookcfg.Scope{webhookcfg.All(), webhookcfg.Entity("e1")} {
			sc.applyAt(webhookcfg.SetChange(fmt.Sprint("time ", n), scope, egress.NewURL(hookURL(n))), at)
		}
	}
}
