package storetest

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"example.com/go-webhookcfg/store/admin"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// universe lists the entities of a model. No change names the last one, so it stands for all
// entities without an override.
var universe = []string{"E2", "e1", "e10", "e2", unnamed}

// model says what Resolve must return for each entity of one client that a change has named,
// and for unnamed. It has no bases and overrides: set of all is a loop.
type model map[string]webhookcfg.Webhook

// newModel returns the model of a client with nothing set.
func newModel() model { return model{unnamed: {}} }

// of returns what Resolve must return for an entity.
func (m model) of(entity string) webhookcfg.Webhook {
	if hook, named := m[entity]; named {
		return hook
	}
	return m[unnamed]
}

// after returns the model after a change.
func (m model) after(c webhookcfg.Change) model {
	next := maps.Clone(m)
	next.change(c)
	return next
}

func (m model) change(c webhookcfg.Change) {
	if !c.Scope.IsAll() {
		hook := webhookcfg.Webhook{URL: c.URL, Source: override, Since: c.Time}
		if c.URL.IsZero() {
			hook.Source = off
			if m[unnamed].Source != base {
				hook = webhookcfg.Webhook{}
			}
		}
		m[c.Scope.Entity()] = hook
		return
	}
	hook := webhookcfg.Webhook{URL: c.URL, Source: base, Since: c.Time}
	if c.URL.IsZero() {
		hook = webhookcfg.Webhook{}
	}
	for entity := range m {
		m[entity] = hook
	}
}

// String describes the webhooks of all entities.
func (m model) String() string {
	var all []string
	for _, entity := range slices.Sorted(maps.Keys(m)) {
		all = append(all, fmt.Sprintf("%q: %s", entity, describe(m[entity])))
	}
	return strings.Join(all, ", ")
}

// overrides returns the overrides that a list of the client must have.
func (m model) overrides() (all []webhookcfg.Override) {
	for _, entity := range slices.Sorted(maps.Keys(m)) {
		if hook := m[entity]; hook.Source == override || hook.Source == off {
			all = append(all, webhookcfg.Override{Entity: entity, Webhook: hook})
		}
	}
	return all
}

// isEmpty reports whether the client has nothing set.
func (m model) isEmpty() bool { return m[unnamed].Source != base && len(m.overrides()) == 0 }

// expectModel checks that the store resolves the entities like the model, and lists the client
// like it, if it's a Lister.
func (sc *script) expectModel(client string, m model, entities []string) {
	for _, entity := range entities {
		sc.expect(client, entity, m.of(entity))
	}
	sc.expectList(client, m)
}

// sample returns a part of the entities of the model, and unnamed.
func (m model) sample(most int) []string {
	all := slices.Sorted(maps.Keys(m))
	if len(all) <= most {
		return all
	}
	some := []string{unnamed}
	for n := range most {
		some = append(some, all[n*len(all)/most])
	}
	return some
}

// expectList checks that the store lists the client like the model, if it's a Lister.
func (sc *script) expectList(client string, m model) {
	if _, absent := optional[webhookcfg.Lister](sc.Store); absent != nil || sc.err != nil {
		return
	}
	const limit = 500
	if sc.walk(client, limit, m[unnamed], m.overrides()); sc.err != nil {
		sc.err = fmt.Errorf("%w: List must agree with Resolve at any time\nrule: %s", sc.err, ruleList)
	}
}

// made has the models of the clients that a script, or a fork of it, has changed.
type made struct {
	mu      sync.Mutex
	clients map[string]model
}

func (m *made) change(c webhookcfg.Change) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.clients[c.Client] == nil {
		m.clients[c.Client] = newModel()
	}
	m.clients[c.Client].change(c)
}

// of returns the model of a client. Nobody may change the client concurrently.
func (m *made) of(client string) model {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.clients[client] == nil {
		return newModel()
	}
	return m.clients[client]
}

// expectAll checks everything that the script has set, once more: what Resolve returns, and
// what's listed. So it finds changes that were lost since, or that another name has overwritten.
// It shows no steps, because the last ones can be about other clients.
func (sc *script) expectAll(when string) {
	if sc.err != nil {
		return
	}
	const sample = 100
	clients := slices.Sorted(maps.Keys(sc.made.clients))
	again := sc.fork(0)
	again.check(sc.concurrently(len(clients), func(sc *script, n int) {
		m := sc.made.of(clients[n])
		sc.expectModel(clients[n], m, m.sample(sample))
	}))
	if again.expectClients(); again.err != nil {
		sc.err = fmt.Errorf("everything that the case had set was compared %s:\n%w", when, again.err)
	}
}

// expectClients checks that the store lists the clients with anything set, if it's a
// ClientLister.
func (sc *script) expectClients() {
	l, absent := optional[admin.ClientLister](sc.Store)
	if absent != nil || sc.err != nil || errors.Is(errorOf(l.ListClients(sc.ctx, "", 1)), errors.ErrUnsupported) {
		return
	}
	const limit = 500
	if newClientWalk(l, limit).finish(sc, sc.configured()); sc.err != nil {
		sc.err = fmt.Errorf("%w\nrule: %s", sc.err, clients2)
	}
}

// configured returns the clients that have anything set.
func (sc *script) configured() (all []string) {
	for _, client := range slices.Sorted(maps.Keys(sc.made.clients)) {
		if !sc.made.of(client).isEmpty() {
			all = append(all, client)
		}
	}
	return all
}

// same compares times to the microsecond, as clause 10 requires. A store can round up or down.
func same(a, b webhookcfg.Webhook) bool {
	late := a.Since.Sub(b.Since)
	return a.Source == b.Source && a.URL.Equal(b.URL) && -time.Microsecond < late && late < time.Microsecond && a.Since.IsZero() == b.Since.IsZero()
}

// Many short histories find more than one long history, because most defects show in states
// with few entries.
const (
	histories     = 12
	historyLength = 30
	reopenings    = 3 // per history, on average
)

// historyAgrees checks that every state of random histories is the model's.
func historyAgrees(sc *script) error {
	return runHistories(sc, func(*history) {})
}

// historyReopening checks the same for a store that's reopened now and then.
func historyReopening(sc *script) error {
	return runHistories(sc, func(h *history) {
		if h.random.IntN(historyLength) < reopenings {
			h.reopen()
			h.expectModels()
		}
	})
}

// history is a random history of two clients.
type history struct {
	*script
	random *rand.Rand
	names  [2]string
}

// runHistories makes random changes, and calls next after each. It looks at a part of the
// state after each change, and at everything now and then, and at the end.
func runHistories(sc *script, next func(h *history)) error {
	const all = 8 // changes until it looks at everything
	seed := sc.Seed
	for seed == 0 {
		seed = rand.Uint64()
	}
	h := &history{script: sc, random: rand.New(rand.NewPCG(seed, 0))}
	for n := range max(2, sc.fewer(histories)/len(sc.handles)) { // fewer with several handles, since each is read
		h.steps = nil
		h.names = [2]string{fmt.Sprintf("a%d", n), fmt.Sprintf("A%d", n)}
		for step := range historyLength {
			c := h.apply(h.change())
			next(h)
			h.expectSome(c.Client)
			if step%all == 0 {
				h.expectModels()
			}
		}
		if h.expectModels(); h.err != nil {
			return fmt.Errorf("seed %d, random history %d (set Harness.Seed to this seed to repeat it): %w", seed, n, h.err)
		}
	}
	if len(h.handles) > 1 { // one that comes later must know what was before
		h.handles = append(h.handles, h.OpenPeer(h.Store))
	}
	h.expectAll("at the end of the histories")
	return h.err
}

// expectModels checks the state of both clients.
func (h *history) expectModels() {
	for _, client := range h.names {
		h.expectModel(client, h.made.of(client), universe)
	}
}

// expectSome checks two entities of the client that changed, or all if it lists them, and one
// entity of any client.
func (h *history) expectSome(changed string) {
	if h.random.IntN(2) == 0 {
		h.expectList(changed, h.made.of(changed))
	}
	for _, client := range []string{changed, changed, h.names[h.random.IntN(len(h.names))]} {
		entity := universe[h.random.IntN(len(universe))]
		h.expect(client, entity, h.made.of(client).of(entity))
	}
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
