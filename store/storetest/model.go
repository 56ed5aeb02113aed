package storetest

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"example.com/go-webhookcfg/webhookcfg"
)

// universe are the entities that a model knows. No change names the last one, so
// that it always has what every other entity of the world has.
var universe = []string{"E2", "e1", "e10", "e2", unnamed}

// model is what Resolve has to return for each entity of one client. It knows
// nothing of bases and overrides: set of all is a loop.
type model map[string]webhookcfg.Webhook

// after returns the model that a change leads to.
func (m model) after(c webhookcfg.Change) model {
	next := make(model)
	maps.Copy(next, m)
	if !c.Scope.IsAll() {
		next.change(c.Scope.Entity(), c, override)
		return next
	}
	for _, entity := range universe {
		next.change(entity, c, base)
	}
	return next
}

func (m model) change(entity string, c webhookcfg.Change, source webhookcfg.Source) {
	switch {
	case !c.URL.IsZero():
	case source == override && m[unnamed].Source == base:
		source = off
	default:
		delete(m, entity)
		return
	}
	m[entity] = webhookcfg.Webhook{URL: c.URL, Source: source, Since: c.Time}
}

// overrides returns what a walk over the client's overrides has to list.
func (m model) overrides() (all []webhookcfg.Override) {
	for _, entity := range slices.Sorted(maps.Keys(m)) {
		if hook := m[entity]; hook.Source != base {
			all = append(all, webhookcfg.Override{Entity: entity, Webhook: hook})
		}
	}
	return all
}

// compare returns nil if the store resolves every entity as the model does.
func (m model) compare(ctx context.Context, s webhookcfg.Store, client string) error {
	for _, entity := range universe {
		got, err := s.Resolve(ctx, client, entity)
		if err != nil {
			return fmt.Errorf("resolve of %q / %q returned the error %w", client, entity, err)
		}
		if !same(got, m[entity]) {
			return fmt.Errorf("resolve of %q / %q gives %s, want %s", client, entity, describe(got), describe(m[entity]))
		}
	}
	return nil
}

// same compares times to the second, which is all that a store has to keep.
func same(a, b webhookcfg.Webhook) bool {
	return a.Source == b.Source && a.URL.Equal(b.URL) && a.Since.Unix() == b.Since.Unix()
}
