package storetest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"

	"example.com/go-webhookcfg/internal/interrupt"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// listOrder checks that one large page has all overrides in byte order.
func listOrder(sc *script) error {
	base, all := sc.listed()
	sc.walk(client, math.MaxInt, base, all)
	return sc.err
}

// listWalk checks that pages of any size have every override once. There can be many, most of
// them dropped one by one. It also lists two clients with the same entities in turn.
func listWalk(sc *script) error {
	base, all := sc.listed()
	for _, limit := range []int{1, 7, len(all) - 1, len(all), len(all) + 1} {
		sc.walk(client, limit, base, all)
	}
	sc.setCrowd("crowd")
	for _, limit := range []int{300, math.MaxInt} {
		sc.walk("crowd", limit, webhookcfg.Webhook{}, sc.crowded())
	}
	const left = 64 // one of so many stays
	sc.check(sc.concurrently(sc.crowd()/3, func(sc *script, n int) {
		if n%left > 0 {
			sc.unset("crowd", entityName(n))
		}
	}))
	sc.walk("crowd", 20, webhookcfg.Webhook{}, sc.made.of("crowd").overrides())
	for _, o := range all {
		sc.set("other", o.Entity, hookURL(-1))
	}
	walks := [...]*pageWalk{
		{client: client, limit: 5, base: base, rest: all},
		{client: "other", limit: 5, rest: sc.made.of("other").overrides()},
	}
	for sc.err == nil && !(walks[0].ended && walks[1].ended) {
		walks[0].step(sc)
		walks[1].step(sc)
	}
	return sc.err
}

// listAfter checks that a page can start after any name, even if that has no override.
func listAfter(sc *script) error {
	base, all := sc.listed()
	for _, after := range append(sc.lookalikes(), append(sc.storable([]string{"e\x7f"}), unnamed, "\U0010ffff", "d", "A")...) {
		rest := slices.DeleteFunc(slices.Clone(all), func(o webhookcfg.Override) bool { return o.Entity <= after })
		sc.walkAfter(client, after, len(all), base, rest)
	}
	return sc.err
}

// listBase checks that every page has the base, even if there are no overrides, and an empty
// one if the client has none.
func listBase(sc *script) error {
	entities := []string{"e0", "e1", "e2"}
	for n, entity := range entities {
		sc.set(client, entity, hookURL(n))
	}
	walk := func() { sc.walk(client, 1, sc.made.of(client)[unnamed], sc.made.of(client).overrides()) }
	walk()
	sc.setAll(client, hookURL(3))
	walk()
	for _, entity := range entities {
		sc.unset(client, entity)
	}
	walk()
	return sc.err
}

// listUnknown checks that clients with nothing set have an empty page.
func listUnknown(sc *script) error {
	sc.fill("emptied")
	sc.unsetAll("emptied")
	sc.setAll("full", hookURL(0))
	sc.set("full", "e1", hookURL(1))
	for _, client := range sc.storable(slices.Concat([]string{"unknown", "emptie", "emptied"}, patterns("full"), reserved())) {
		sc.walk(client, 10, webhookcfg.Webhook{}, nil)
	}
	return sc.err
}

// listInvalid checks that an empty client and limits below 1 are refused.
func listInvalid(sc *script, l webhookcfg.Lister) error {
	sc.set(client, "e1", hookURL(1))
	sc.check(errors.Join(
		refused("List without a client", errorOf(l.List(sc.ctx, "", "", 1))),
		refused("List with limit 0", errorOf(l.List(sc.ctx, client, "", 0))),
		refused("List with limit -1", errorOf(l.List(sc.ctx, client, "", -1)))))
	return sc.err
}

// listEndedContext checks that List returns an error if the context ended before the call. If
// it ends during the call, List can return an error or the page.
func listEndedContext(sc *script, l webhookcfg.Lister) error {
	base, all := sc.listed()
	for _, over := range endedContexts(sc.ctx) {
		if _, err := l.List(over, client, "", len(all)); err == nil {
			return errors.New("a call of List with an ended ctx returned no error: check ctx.Err first")
		}
	}
	sc.check(interrupt.Each(sc.ctx, func(over context.Context) error {
		page, err := l.List(over, client, "", len(all))
		if err != nil {
			return holdsNoURL(err)
		}
		return comparePage(page, base, all)
	}))
	return sc.err
}

// listOwnedByCaller checks that you can overwrite a page, even beyond its length, without an
// effect on other callers.
func listOwnedByCaller(sc *script, l webhookcfg.Lister) error {
	base, all := sc.listed()
	page, err := l.List(sc.ctx, client, "", 5)
	sc.check(err)
	overwritten := page.Overrides[:cap(page.Overrides)]
	for n := range overwritten {
		overwritten[n] = webhookcfg.Override{Entity: "overwritten"}
	}
	sc.steps = append(sc.steps, "overwrite a page")
	sc.walk(client, 5, base, all)
	for _, want := range all {
		sc.expect(client, want.Entity, want.Webhook)
	}
	return sc.err
}

// listOneMoment checks that a page shows the client as it was after one of the steps, whether
// it has one override, some, or a crowd.
func listOneMoment(sc *script, l webhookcfg.Lister) error {
	for _, entities := range []int{1, some} {
		m := &stepper{entities: entities, minReads: int64(sc.fewer(250))}
		err := m.run(sc, func(_, _ int) (first, last int64, err error) {
			page, err := l.List(sc.ctx, client, "", some+1)
			if err != nil {
				return 0, 0, err
			}
			step := stepAt(page.Base.Since)
			for _, o := range page.Overrides {
				step = max(step, stepAt(o.Webhook.Since))
			}
			step = max(step, 0)
			base, overrides := m.page(step)
			if err := comparePage(page, base, overrides); err != nil {
				return 0, 0, fmt.Errorf("a page has change %d, but not all before it, so it isn't from one moment: %w", step, err)
			}
			return step, m.lastUnlisted(step, page.Next), nil
		})
		if err != nil {
			return err
		}
	}
	return crowdOneMoment(sc, l)
}

// crowdOneMoment checks the same for pages with a crowd of overrides. Some of these change,
// one after the other, while the pages are read.
func crowdOneMoment(sc *script, l webhookcfg.Lister) error {
	const (
		client       = "crowd"
		readers      = 2
		pages        = 12 // per reader
		turnsPerPage = 16
		changed      = 7 // overrides, far from each other
	)
	sc.setCrowd(client)
	if sc.err != nil {
		return sc.err
	}
	all := sc.crowded()
	entity := func(step int64) int { return int(step%changed) * (len(all) - 1) / (changed - 1) }
	result := func(step int64) webhookcfg.Webhook {
		return webhookcfg.Webhook{URL: egress.NewURL(hookURL(-int(step))), Source: override, Since: timeOf(step)}
	}
	read := func() error {
		page, err := l.List(sc.ctx, client, "", len(all)+1)
		if err != nil {
			return err
		}
		latest := int64(0)
		for _, o := range page.Overrides {
			latest = max(latest, stepAt(o.Webhook.Since))
		}
		want := slices.Clone(all)
		for step := max(1, latest-changed+1); step <= latest; step++ {
			want[entity(step)].Webhook = result(step)
		}
		if err := comparePage(page, webhookcfg.Webhook{}, want); err != nil {
			return fmt.Errorf("a page has change %d, but not all before it, so it isn't from one moment: %w", latest, err)
		}
		return nil
	}
	turns := make(chan struct{}, turnsPerPage)
	var reading sync.WaitGroup
	reading.Add(readers)
	go func() {
		reading.Wait()
		close(turns)
	}()
	return together(1+readers, func(n int) error {
		if n == 0 {
			for range turns {
				sc.now++
				sc.applyAt(webhookcfg.SetChange(client, webhookcfg.Entity(all[entity(sc.now)].Entity), result(sc.now).URL), timeOf(sc.now))
			}
			return sc.err
		}
		defer reading.Done()
		for range pages {
			for range turnsPerPage {
				select {
				case turns <- struct{}{}:
				default:
				}
			}
			if err := read(); err != nil {
				return err
			}
			runtime.Gosched() // let the writer run
		}
		return nil
	})
}

// lastUnlisted returns the last step that gives the same page as the given step. The page
// lacks the entities after next, so their changes don't show.
func (m *stepper) lastUnlisted(step int64, next string) int64 {
	for next != "" && m.entity(step+1) != allEntities && entityName(m.entity(step+1)) > next {
		step++
	}
	return step
}

// page returns the base and the overrides that a page must have after a step.
func (m *stepper) page(step int64) (base webhookcfg.Webhook, all []webhookcfg.Override) {
	overrides := make(map[int]webhookcfg.Webhook)
	for ; m.entity(step) != allEntities; step-- {
		if n := m.entity(step); overrides[n].Source == webhookcfg.SourceNone {
			overrides[n] = m.result(step)
		}
	}
	for n, hook := range overrides {
		all = append(all, webhookcfg.Override{Entity: entityName(n), Webhook: hook})
	}
	slices.SortFunc(all, byEntity)
	return m.result(step), all
}

// listed gives the client a base, and an override for each lookalike, with some of them off.
// It returns them in byte order.
func (sc *script) listed() (webhookcfg.Webhook, []webhookcfg.Override) {
	sc.setAll(client, hookURL(0))
	for n, entity := range sc.lookalikes() {
		if n%3 == 0 {
			sc.unset(client, entity)
		} else {
			sc.set(client, entity, hookURL(n))
		}
		if n%5 == 0 {
			sc.set("acme ", entity+"2", hookURL(n)) // a neighbour
		}
	}
	return sc.made.of(client)[unnamed], sc.made.of(client).overrides()
}

func byEntity(a, b webhookcfg.Override) int { return strings.Compare(a.Entity, b.Entity) }

// walk checks that pages of the given limit, one after another, have the base and the
// overrides.
func (sc *script) walk(client string, limit int, base webhookcfg.Webhook, want []webhookcfg.Override) {
	sc.walkAfter(client, "", limit, base, want)
}

// walkAfter does the same for the pages that start after a name.
func (sc *script) walkAfter(client, after string, limit int, base webhookcfg.Webhook, want []webhookcfg.Override) {
	for w := (pageWalk{client: client, limit: limit, base: base, rest: want, after: after}); sc.err == nil && !w.ended; {
		w.step(sc)
	}
}

// pageWalk is a walk over the pages of a client.
type pageWalk struct {
	client string
	limit  int
	base   webhookcfg.Webhook
	rest   []webhookcfg.Override // the overrides that the next pages must have
	after  string
	empty  int // pages without an override so far
	ended  bool
}

// step checks the next page, if there's one. A page can have fewer overrides than the limit,
// or none, as long as it has a Next. Each handle can return a different number of them. The
// walk follows the first handle.
func (w *pageWalk) step(sc *script) {
	if sc.err != nil || w.ended {
		return
	}
	var first webhookcfg.Page
	for n, handle := range sc.handles {
		var page webhookcfg.Page
		l, err := optional[webhookcfg.Lister](handle)
		if err == nil {
			page, err = l.List(sc.ctx, w.client, w.after, w.limit)
		}
		if err == nil {
			err = w.compare(page)
		}
		if err != nil {
			sc.fail("List(%q, %q, %d) through handle %d: %w", w.client, w.after, w.limit, n, err)
			return
		}
		if n == 0 {
			first = page
		}
	}
	w.rest, w.after, w.ended = w.rest[len(first.Overrides):], first.Next, first.Next == ""
	if len(first.Overrides) == 0 {
		w.empty++
	}
	const patience = 2000
	if w.empty > patience { // a store may look at only one override per page, and that may be gone
		sc.fail("List of %q with limit %d returned %d empty pages, and Next is still %q: an empty Next must end the walk at some time", w.client, w.limit, w.empty, w.after)
	}
}

// compare returns nil if the page has the base and the next overrides, and a Next if there
// are more.
func (w *pageWalk) compare(page webhookcfg.Page) error {
	if len(page.Overrides) > w.limit {
		return fmt.Errorf("the page has %d overrides, more than the limit", len(page.Overrides))
	}
	return comparePage(page, w.base, w.rest)
}

// comparePage returns nil if a page has the base and the first of the overrides, and a Next
// if there are more.
func comparePage(page webhookcfg.Page, base webhookcfg.Webhook, want []webhookcfg.Override) error {
	if !same(page.Base, base) {
		return fmt.Errorf("page.Base is %s, want %s", describe(page.Base), describe(base))
	}
	for n, got := range page.Overrides {
		switch {
		case n == len(want):
			return fmt.Errorf("page.Overrides[%d] is %q: %s, but the page should have only %d overrides", n, got.Entity, describe(got.Webhook), n)
		case got.Entity != want[n].Entity || !same(got.Webhook, want[n].Webhook):
			return fmt.Errorf("page.Overrides[%d] is %q: %s, want %q: %s", n,
				got.Entity, describe(got.Webhook), want[n].Entity, describe(want[n].Webhook))
		}
	}
	if len(page.Overrides) < len(want) && page.Next == "" {
		return fmt.Errorf(`page.Next is "" after %d overrides, but there are %d`, len(page.Overrides), len(want))
	}
	return nil
}
