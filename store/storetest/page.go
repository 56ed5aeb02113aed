package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"example.com/go-webhookcfg/webhookcfg"
)

// listed gives the client a base and overrides of all lookalikes, some of them
// off, and returns what they are in byte order.
func listed(ctx context.Context, s webhookcfg.Store) (webhookcfg.Webhook, []webhookcfg.Override, error) {
	p := begin(ctx, s)
	p.setAll(client, hookURL(0))
	for n, entity := range lookalikes() {
		p.set(client, entity, hookURL(n))
		if n%3 == 0 {
			p.unset(client, entity)
		}
		p.set("acme ", entity+"2", hookURL(n)) // a neighbour
	}
	var all []webhookcfg.Override
	for _, entity := range slices.Sorted(slices.Values(lookalikes())) {
		all = append(all, webhookcfg.Override{Entity: entity, Webhook: p.resolve(client, entity)})
	}
	return p.resolve(client, unnamed), all, p.err
}

// walk returns nil if the pages of that limit are, one after the other, what is
// wanted.
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
		return errors.New(`the Next of the page is "", but there is more`)
	case !more && page.Next != "":
		return fmt.Errorf(`the Next of the last page is %q, want ""`, page.Next)
	}
	return nil
}
