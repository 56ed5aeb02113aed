package storetest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// universe lists the entities of a model. No change names the last one, so it stands for all
// entities without an override.
var universe = []string{"E2", "e1", "e10", "e2", unnamed}

// model says what Resolve must return for each entity of one client. It has no bases and
// overrides: set of all is a loop.
type model map[string]webhookcfg.Webhook

// after returns the model after a change.
func (m model) after(c webhookcfg.Change) model {
	next := make(model)
	if !c.Scope.IsAll() {
		maps.Copy(next, m)
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

// String describes the webhooks of all entities.
func (m model) String() string {
	var all []string
	for _, entity := range universe {
		all = append(all, fmt.Sprintf("%q: %s", entity, describe(m[entity])))
	}
	return strings.Join(all, ", ")
}

// overrides returns the overrides that a list of the client must have.
func (m model) overrides() (all []webhookcfg.Override) {
	for _, entity := range slices.Sorted(maps.Keys(m)) {
		if hook := m[entity]; hook.Source != base {
			all = append(all, webhookcfg.Override{Entity: entity, Webhook: hook})
		}
	}
	return all
}

// expectModel checks that the store resolves every entity like the model.
func (sc *script) expectModel(client string, m model) {
	for _, entity := range universe {
		sc.expect(client, entity, m[entity])
	}
}

// same compares times to the microsecond, as clause 10 requires.
func same(a, b webhookcfg.Webhook) bool {
	return a.Source == b.Source && a.URL.Equal(b.URL) && a.Since.UnixMicro() == b.Since.UnixMicro()
}

// Many short histories find more than one long history, because most defects show in states
// with few entries.
const (
	histories     = 15
	historyLength = 30
	reopenings    = 3 // per history, on average
)

// historyAgrees checks that every state of random histories is the model's.
func historyAgrees(sc *script) error {
	return runHistories(sc, (*history).expectChanged)
}

// historyReopening checks the same for a store that's reopened now and then.
func historyReopening(sc *script) error {
	return runHistories(sc, func(h *history, client string) {
		if h.random.IntN(historyLength) < reopenings {
			h.reopen()
		}
		h.expectChanged(client)
	})
}

// listHistory checks that the client's pages after each change of a random history, with
// random sizes, are the model's.
func listHistory(sc *script) error {
	return runHistories(sc, func(h *history, client string) {
		if h.random.IntN(historyLength) < 3 {
			client = h.names[h.random.IntN(len(h.names))] // maybe not the one that changed
		}
		m := h.models[client]
		h.walk(client, 1+h.random.IntN(len(universe)), m[unnamed], m.overrides())
	})
}

// history is a random history of two clients. It applies each change to the store and to the
// client's model.
type history struct {
	*script
	random *rand.Rand
	names  [2]string
	models map[string]model
}

// runHistories makes random changes, and calls check with the client after each. At the end
// of a history, it compares the whole state with the model.
func runHistories(sc *script, check func(h *history, client string)) error {
	seed := sc.Seed
	for seed == 0 {
		seed = rand.Uint64()
	}
	h := &history{script: sc, random: rand.New(rand.NewPCG(seed, 0))}
	for n := range max(1, sc.fewer(histories)/len(sc.handles)) { // fewer with several handles, since each is read
		h.steps = nil
		h.names = [2]string{fmt.Sprintf("a%d", n), fmt.Sprintf("A%d", n)}
		h.models = make(map[string]model)
		for range historyLength {
			c := h.apply(h.change())
			h.models[c.Client] = h.models[c.Client].after(c)
			check(h, c.Client)
		}
		for _, client := range h.names {
			h.expectModel(client, h.models[client])
		}
		if h.err != nil {
			return fmt.Errorf("seed %d, random history %d (set Harness.Seed to this seed to repeat it): %w", seed, n, h.err)
		}
	}
	return nil
}

// expectChanged checks every entity of the client that changed, and one entity of any client.
func (h *history) expectChanged(client string) {
	h.expectModel(client, h.models[client])
	other, entity := h.names[h.random.IntN(len(h.names))], universe[h.random.IntN(len(universe))]
	h.expect(other, entity, h.models[other][entity])
}

// change returns a random change. Its URL isn't always new.
func (h *history) change() webhookcfg.Change {
	client := h.names[h.random.IntN(len(h.names))]
	scope := webhookcfg.All()
	if h.random.IntN(4) > 0 {
		scope = webhookcfg.Entity(universe[h.random.IntN(len(universe)-1)])
	}
	if h.random.IntN(2) == 0 {
		return webhookcfg.SetChange(client, scope, egress.NewURL(hookURL(h.random.IntN(6))))
	}
	return webhookcfg.UnsetChange(client, scope)
}
