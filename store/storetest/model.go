package storetest

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// universe lists the entities of a model. No change names the last one, which therefore
// stands for all entities without an override.
var universe = []string{"E2", "e1", "e10", "e2", unnamed}

// model maps each entity of one client to the required result of Resolve. It has no bases
// and no overrides: set of all is a loop.
type model map[string]webhookcfg.Webhook

// after returns the model after a change.
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

// overrides returns the overrides that a listing of the client must contain.
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
			return fmt.Errorf("resolve of %q / %q: %w", client, entity, err)
		}
		if !same(got, m[entity]) {
			return fmt.Errorf("resolve of %q / %q: %s, want %s", client, entity, describe(got), describe(m[entity]))
		}
	}
	return nil
}

// same compares times to the second, which is the precision that clause 10 requires.
func same(a, b webhookcfg.Webhook) bool {
	return a.Source == b.Source && a.URL.Equal(b.URL) && a.Since.Unix() == b.Since.Unix()
}

// Many short histories find more defects than one long history, because most defects
// show in states with few entries.
const (
	histories     = 25
	historyLength = 30
	reopenings    = 3 // per history, on average
)

// historyAgrees requires that every state of random histories is that of the model.
func historyAgrees(ctx context.Context, e Env) error {
	return runHistories(ctx, e, func(*history) error { return nil })
}

// historyReopening requires the same of a store that is reopened now and then.
func historyReopening(ctx context.Context, e Env) error {
	if err := e.durable(); err != nil {
		return err
	}
	return runHistories(ctx, e, func(h *history) error {
		if h.random.IntN(historyLength) < reopenings {
			h.steps = append(h.steps, "reopen")
			h.store = e.Reopen(h.store)
		}
		return nil
	})
}

// historyThroughPeers requires the same if consecutive changes are made, and read,
// through different handles.
func historyThroughPeers(ctx context.Context, e Env) error {
	handles, err := e.handles(3)
	if err != nil {
		return err
	}
	return runHistories(ctx, e, func(h *history) error {
		n := h.random.IntN(len(handles))
		h.steps = append(h.steps, fmt.Sprintf("continue with handle %d", n))
		h.store = handles[n]
		return nil
	})
}

// listHistory requires that the listings after each change of a random history, with
// pages of random size, are those of the model.
func listHistory(ctx context.Context, e Env) error {
	l, err := e.lister()
	if err != nil {
		return err
	}
	return runHistories(ctx, e, func(h *history) error {
		for _, client := range h.names {
			m := h.models[client]
			if err := walk(ctx, l, client, 1+h.random.IntN(len(universe)), m[unnamed], m.overrides()); err != nil {
				return err
			}
		}
		return nil
	})
}

// runHistories makes random changes; after each, it calls between and compares the whole
// state with the model.
func runHistories(ctx context.Context, e Env, between func(*history) error) error {
	seed := e.Seed
	for seed == 0 {
		seed = rand.Uint64()
	}
	h := &history{random: rand.New(rand.NewPCG(seed, 0)), store: e.Store}
	for n := range histories {
		h.restart(n)
		for range historyLength {
			err := h.apply(ctx)
			if err == nil {
				err = between(h)
			}
			if err == nil {
				err = h.compare(ctx)
			}
			if err != nil {
				return fmt.Errorf("seed %d, history %d: after%s\n%w", seed, n, lines(h.steps), err)
			}
		}
	}
	return nil
}

// history is a random history of two clients, applied to the store and to a model of
// each.
type history struct {
	random *rand.Rand
	store  webhookcfg.Store
	now    int64
	names  [2]string
	models map[string]model
	steps  []string
}

// restart starts the nth history, on new clients.
func (h *history) restart(n int) {
	h.steps = nil
	h.names = [2]string{fmt.Sprintf("a%d", n), fmt.Sprintf("A%d", n)}
	h.models = make(map[string]model)
}

func (h *history) apply(ctx context.Context) error {
	c := h.change()
	h.steps = append(h.steps, describeChange(c))
	if err := h.store.Apply(ctx, c); err != nil {
		return fmt.Errorf("error: %w", err)
	}
	h.models[c.Client] = h.models[c.Client].after(c)
	return nil
}

func (h *history) compare(ctx context.Context) error {
	for _, client := range h.names {
		if err := h.models[client].compare(ctx, h.store, client); err != nil {
			return err
		}
	}
	return nil
}

// change returns a random change. URLs repeat, times do not.
func (h *history) change() webhookcfg.Change {
	client := h.names[h.random.IntN(len(h.names))]
	scope := webhookcfg.All()
	if h.random.IntN(4) > 0 {
		scope = webhookcfg.Entity(universe[h.random.IntN(len(universe)-1)])
	}
	c := webhookcfg.Unset(client, scope)
	if h.random.IntN(2) == 0 {
		c = webhookcfg.Set(client, scope, egress.NewURL(hookURL(h.random.IntN(6))))
	}
	h.now++
	c.Time = time.Unix(epoch+h.now, 0)
	return c
}
