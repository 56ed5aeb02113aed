package storetest

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"example.com/go-webhookcfg/webhookcfg"
)

// listOrder requires that one large page contains all overrides in byte order.
func listOrder(sc *script, l webhookcfg.Lister) error {
	base, all := sc.listed()
	sc.walk(l, client, math.MaxInt, base, all)
	return sc.err
}

// listWalk requires that pages of any size, one after another, contain every override
// once.
func listWalk(sc *script, l webhookcfg.Lister) error {
	base, all := sc.listed()
	for _, limit := range []int{1, 2, 7, len(all) - 1, len(all), len(all) + 1} {
		sc.walk(l, client, limit, base, all)
	}
	return sc.err
}

// listAfter requires that a page can start after any name, whether it has an override
// or not.
func listAfter(sc *script, l webhookcfg.Lister) error {
	base, all := sc.listed()
	for _, after := range append(lookalikes(), unnamed, "\U0010ffff", "d", "e\x7f", "A") {
		rest := slices.DeleteFunc(slices.Clone(all), func(o webhookcfg.Override) bool { return o.Entity <= after })
		sc.expectPage(l, client, after, len(all), base, rest, false)
	}
	return sc.err
}

// listBase requires that every page has the base, also if there is none or if there are
// no overrides.
func listBase(sc *script, l webhookcfg.Lister) error {
	entities := []string{"e0", "e1", "e2"}
	for n, entity := range entities {
		sc.set(client, entity, hookURL(n))
	}
	sc.walk(l, client, 1, webhookcfg.Webhook{}, sc.overrides(entities))
	sc.setAll(client, hookURL(3))
	base := sc.resolve(client, unnamed)
	sc.walk(l, client, 1, base, nil)
	for _, entity := range entities {
		sc.unset(client, entity)
	}
	sc.walk(l, client, 1, base, sc.overrides(entities))
	return sc.err
}

// listUnknown requires an empty page for clients without a configuration.
func listUnknown(sc *script, l webhookcfg.Lister) error {
	sc.fill("emptied")
	sc.unsetAll("emptied")
	for _, client := range []string{"unknown", "emptie", "emptied"} {
		sc.walk(l, client, 10, webhookcfg.Webhook{}, nil)
	}
	return sc.err
}

// listInvalid requires ErrInvalidArgument for an empty client and for limits below 1.
func listInvalid(sc *script, l webhookcfg.Lister) error {
	sc.set(client, "e1", hookURL(1))
	_, errClient := l.List(sc.ctx, "", "", 1)
	_, errZero := l.List(sc.ctx, client, "", 0)
	_, errNegative := l.List(sc.ctx, client, "", -1)
	sc.check(errors.Join(
		refused("list without a client", errClient),
		refused("list with limit 0", errZero),
		refused("list with limit -1", errNegative)))
	return sc.err
}

// listOwnedByCaller requires that a caller may overwrite a page, also beyond its
// length, without effect on others.
func listOwnedByCaller(sc *script, l webhookcfg.Lister) error {
	base, all := sc.listed()
	page, err := l.List(sc.ctx, client, "", 5)
	sc.check(err)
	overwritten := page.Overrides[:cap(page.Overrides)]
	for n := range overwritten {
		overwritten[n] = webhookcfg.Override{Entity: "overwritten"}
	}
	sc.steps = append(sc.steps, "overwrite a page")
	sc.walk(l, client, 5, base, all)
	for _, want := range all {
		sc.expect(client, want.Entity, want.Webhook)
	}
	return sc.err
}

// listOneMoment requires that a page is one state that the client had: exactly that of
// one step.
func listOneMoment(sc *script, l webhookcfg.Lister) error {
	return new(stepper).run(sc, func(int) (int64, bool, error) {
		page, err := l.List(sc.ctx, client, "", 10)
		if err != nil {
			return 0, false, err
		}
		step, err := pageStep(page)
		return step, true, err
	})
}

// pageStep returns the step that a page results from.
func pageStep(page webhookcfg.Page) (int64, error) {
	last, err := stepOf(page.Base)
	if err != nil || len(page.Overrides) == 0 {
		return last, err
	}
	step, err := stepOf(page.Overrides[0].Webhook)
	if err == nil && (len(page.Overrides) > 1 || step-step%3 != last) {
		err = fmt.Errorf("a page has the base of change %d and %d overrides, one of change %d", last, len(page.Overrides), step)
	}
	return step, err
}

// listed gives the client a base and overrides for all lookalikes, some of them off, and
// returns them in byte order.
func (sc *script) listed() (webhookcfg.Webhook, []webhookcfg.Override) {
	sc.setAll(client, hookURL(0))
	for n, entity := range lookalikes() {
		sc.set(client, entity, hookURL(n))
		if n%3 == 0 {
			sc.unset(client, entity)
		}
		sc.set("acme ", entity+"2", hookURL(n)) // a neighbour
	}
	return sc.resolve(client, unnamed), sc.overrides(slices.Sorted(slices.Values(lookalikes())))
}

// overrides returns the overrides that the entities resolve to.
func (sc *script) overrides(entities []string) []webhookcfg.Override {
	var all []webhookcfg.Override
	for _, entity := range entities {
		all = append(all, webhookcfg.Override{Entity: entity, Webhook: sc.resolve(client, entity)})
	}
	return all
}

// walk checks that the pages with the limit contain, one after another, the base and the
// overrides.
func (sc *script) walk(l webhookcfg.Lister, client string, limit int, base webhookcfg.Webhook, want []webhookcfg.Override) {
	for after := ""; sc.err == nil; {
		count := min(limit, len(want))
		after = sc.expectPage(l, client, after, limit, base, want[:count], count < len(want))
		if want = want[count:]; after == "" {
			return
		}
	}
}

// expectPage checks that a page has the base, the overrides and, if there are more, a
// Next, which it returns.
func (sc *script) expectPage(l webhookcfg.Lister, client, after string, limit int, base webhookcfg.Webhook, want []webhookcfg.Override, more bool) (next string) {
	if sc.err != nil {
		return ""
	}
	page, err := l.List(sc.ctx, client, after, limit)
	if err == nil {
		err = comparePage(page, base, want, more)
	}
	if err != nil {
		sc.fail("list of %q after %q, limit %d: %w", client, after, limit, err)
	}
	return page.Next
}

// comparePage returns nil if a page has the base, the overrides and, if there are more,
// a Next.
func comparePage(page webhookcfg.Page, base webhookcfg.Webhook, want []webhookcfg.Override, more bool) error {
	if !same(page.Base, base) {
		return fmt.Errorf("the base is %s, want %s", describe(page.Base), describe(base))
	}
	for n, got := range page.Overrides {
		if n == len(want) {
			break
		}
		if got.Entity != want[n].Entity || !same(got.Webhook, want[n].Webhook) {
			return fmt.Errorf("override %d of the page is %q: %s, want %q: %s", n,
				got.Entity, describe(got.Webhook), want[n].Entity, describe(want[n].Webhook))
		}
	}
	switch {
	case len(page.Overrides) != len(want):
		return fmt.Errorf("the page has %d overrides, want %d", len(page.Overrides), len(want))
	case more && page.Next == "":
		return errors.New(`page.Next is "" on a page that is not the last`)
	case !more && page.Next != "":
		return fmt.Errorf(`page.Next is %q on the last page, want ""`, page.Next)
	}
	return nil
}
