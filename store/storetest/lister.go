package storetest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"example.com/go-webhookcfg/webhookcfg"
)

// listOrder requires that one large page contains all overrides in byte order.
func listOrder(ctx context.Context, e Env) error {
	l, err := e.lister()
	if err != nil {
		return err
	}
	base, all, err := listed(ctx, e.Store)
	if err != nil {
		return err
	}
	return walk(ctx, l, client, math.MaxInt, base, all)
}

// listWalk requires that pages of any size, one after another, contain every override
// once.
func listWalk(ctx context.Context, e Env) error {
	l, err := e.lister()
	if err != nil {
		return err
	}
	base, all, err := listed(ctx, e.Store)
	if err != nil {
		return err
	}
	for _, limit := range []int{1, 2, 7, len(all) - 1, len(all), len(all) + 1} {
		if err := walk(ctx, l, client, limit, base, all); err != nil {
			return err
		}
	}
	return nil
}

// listAfter requires that a page can start after any name, whether it has an override
// or not.
func listAfter(ctx context.Context, e Env) error {
	l, err := e.lister()
	if err != nil {
		return err
	}
	base, all, err := listed(ctx, e.Store)
	if err != nil {
		return err
	}
	for _, after := range append(lookalikes(), unnamed, "\U0010ffff", "d", "e\x7f", "A") {
		page, err := l.List(ctx, client, after, len(all))
		if err == nil {
			first, found := slices.BinarySearchFunc(all, after, compareEntity)
			if found {
				first++
			}
			err = comparePage(page, base, all[first:], false)
		}
		if err != nil {
			return fmt.Errorf("list after %q: %w", after, err)
		}
	}
	return nil
}

// compareEntity orders by the bytes of the entity.
func compareEntity(o webhookcfg.Override, entity string) int {
	switch {
	case o.Entity < entity:
		return -1
	case o.Entity > entity:
		return 1
	}
	return 0
}

// listBase requires that every page has the base, also if there is none or if there are
// no overrides.
func listBase(ctx context.Context, e Env) error {
	l, err := e.lister()
	if err != nil {
		return err
	}
	sc := newScript(ctx, e.Store)
	var all []webhookcfg.Override
	for n := range 3 {
		sc.set(client, entityName(n), hookURL(n))
		all = append(all, webhookcfg.Override{Entity: entityName(n), Webhook: sc.resolve(client, entityName(n))})
	}
	if sc.err == nil {
		sc.err = walk(ctx, l, client, 1, webhookcfg.Webhook{}, all)
	}
	sc.setAll(client, hookURL(3))
	base := sc.resolve(client, unnamed)
	if sc.err == nil {
		sc.err = walk(ctx, l, client, 1, base, nil)
	}
	all = nil
	for n := range 3 {
		sc.unset(client, entityName(n))
		all = append(all, webhookcfg.Override{Entity: entityName(n), Webhook: sc.resolve(client, entityName(n))})
	}
	if sc.err == nil {
		sc.err = walk(ctx, l, client, 1, base, all)
	}
	return sc.err
}

// listUnknown requires an empty page for clients without a configuration.
func listUnknown(ctx context.Context, e Env) error {
	l, err := e.lister()
	if err != nil {
		return err
	}
	sc := newScript(ctx, e.Store)
	sc.fill("emptied")
	sc.unsetAll("emptied")
	if sc.err != nil {
		return sc.err
	}
	for _, client := range []string{"unknown", "emptie", "emptied"} {
		if err := walk(ctx, l, client, 10, webhookcfg.Webhook{}, nil); err != nil {
			return err
		}
	}
	return nil
}

// listInvalid requires ErrInvalidArgument for an empty client and for limits below 1.
func listInvalid(ctx context.Context, e Env) error {
	l, err := e.lister()
	if err != nil {
		return err
	}
	sc := newScript(ctx, e.Store)
	sc.set(client, "e1", hookURL(1))
	if sc.err != nil {
		return sc.err
	}
	_, errClient := l.List(ctx, "", "", 1)
	_, errZero := l.List(ctx, client, "", 0)
	_, errNegative := l.List(ctx, client, "", -1)
	return errors.Join(
		refused("list without a client", errClient),
		refused("list with limit 0", errZero),
		refused("list with limit -1", errNegative))
}

// listOwnedByCaller requires that a caller may overwrite a page, also beyond its
// length, without effect on others.
func listOwnedByCaller(ctx context.Context, e Env) error {
	l, err := e.lister()
	if err != nil {
		return err
	}
	base, all, err := listed(ctx, e.Store)
	if err != nil {
		return err
	}
	page, err := l.List(ctx, client, "", 5)
	if err != nil {
		return err
	}
	overwritten := page.Overrides[:cap(page.Overrides)]
	for n := range overwritten {
		overwritten[n] = webhookcfg.Override{Entity: "overwritten"}
	}
	if err := walk(ctx, l, client, 5, base, all); err != nil {
		return fmt.Errorf("after a caller wrote to a page: %w", err)
	}
	for _, want := range all {
		hook, err := e.Store.Resolve(ctx, client, want.Entity)
		if err != nil {
			return err
		}
		if !same(hook, want.Webhook) {
			return fmt.Errorf("after a caller wrote to a page, %q is %s, want %s", want.Entity, describe(hook), describe(want.Webhook))
		}
	}
	return nil
}

// listOneMoment requires that a page is one state that the client had: exactly that of
// one step.
func listOneMoment(ctx context.Context, e Env) error {
	l, err := e.lister()
	if err != nil {
		return err
	}
	return new(stepper).run(ctx, e.Store, func(int) observe {
		return func() (int64, bool, error) {
			page, err := l.List(ctx, client, "", 10)
			if err != nil {
				return 0, false, err
			}
			step, err := pageStep(page)
			return step, true, err
		}
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
func listed(ctx context.Context, s webhookcfg.Store) (webhookcfg.Webhook, []webhookcfg.Override, error) {
	sc := newScript(ctx, s)
	sc.setAll(client, hookURL(0))
	for n, entity := range lookalikes() {
		sc.set(client, entity, hookURL(n))
		if n%3 == 0 {
			sc.unset(client, entity)
		}
		sc.set("acme ", entity+"2", hookURL(n)) // a neighbour
	}
	var all []webhookcfg.Override
	for _, entity := range slices.Sorted(slices.Values(lookalikes())) {
		all = append(all, webhookcfg.Override{Entity: entity, Webhook: sc.resolve(client, entity)})
	}
	return sc.resolve(client, unnamed), all, sc.err
}

// walk returns nil if the pages with the limit contain, one after another, the base and
// the overrides.
func walk(ctx context.Context, l webhookcfg.Lister, client string, limit int, base webhookcfg.Webhook, want []webhookcfg.Override) error {
	after := ""
	for {
		page, err := l.List(ctx, client, after, limit)
		if err != nil {
			return fmt.Errorf("list of %q after %q, limit %d: %w", client, after, limit, err)
		}
		count := min(limit, len(want))
		if err := comparePage(page, base, want[:count], count < len(want)); err != nil {
			return fmt.Errorf("list of %q after %q, limit %d: %w", client, after, limit, err)
		}
		want, after = want[count:], page.Next
		if after == "" {
			return nil
		}
	}
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
