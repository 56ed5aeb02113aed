package storetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// Many short histories find more than a long one: states near the empty one are
// the interesting ones.
const (
	histories     = 25
	historyLength = 30
	reopenings    = 3 // of each history, about
)

func history(ctx context.Context, e Env) error {
	return playHistories(ctx, e, func(*historian) error { return nil })
}

func historyReopening(ctx context.Context, e Env) error {
	if err := e.durable(); err != nil {
		return err
	}
	return playHistories(ctx, e, func(h *historian) error {
		if h.random.IntN(historyLength) < reopenings {
			h.steps = append(h.steps, "reopen")
			h.store = e.Reopen(h.store)
		}
		return nil
	})
}

func historyThroughOthers(ctx context.Context, e Env) error {
	handles, err := e.handles(3)
	if err != nil {
		return err
	}
	return playHistories(ctx, e, func(h *historian) error {
		n := h.random.IntN(len(handles))
		h.steps = append(h.steps, fmt.Sprintf("go on with handle %d", n))
		h.store = handles[n]
		return nil
	})
}

func listHistory(ctx context.Context, e Env) error {
	l, err := e.lister()
	if err != nil {
		return err
	}
	return playHistories(ctx, e, func(h *historian) error {
		for _, client := range h.names {
			m := h.models[client]
			if err := walk(ctx, l, client, 1+h.random.IntN(len(universe)), m[unnamed], m.overrides()); err != nil {
				return err
			}
		}
		return nil
	})
}

// playHistories makes random changes, and after each calls between and asks for
// everything.
func playHistories(ctx context.Context, e Env, between func(*historian) error) error {
	seed := e.Seed
	for seed == 0 {
		seed = rand.Uint64()
	}
	h := &historian{random: rand.New(rand.NewPCG(seed, 0)), store: e.Store}
	for n := range histories {
		h.begin(n)
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

// historian makes the changes of one history, to the store and to a model for
// each client.
type historian struct {
	random *rand.Rand
	store  webhookcfg.Store
	now    int64
	names  [2]string
	models map[string]model
	steps  []string
}

// begin starts the nth history, on clients that are new.
func (h *historian) begin(n int) {
	h.steps = nil
	h.names = [2]string{fmt.Sprintf("a%d", n), fmt.Sprintf("A%d", n)}
	h.models = make(map[string]model)
}

func (h *historian) apply(ctx context.Context) error {
	c := h.change()
	h.steps = append(h.steps, describeChange(c))
	if err := h.store.Apply(ctx, c); err != nil {
		return fmt.Errorf("it returned the error %w", err)
	}
	h.models[c.Client] = h.models[c.Client].after(c)
	return nil
}

func (h *historian) compare(ctx context.Context) error {
	for _, client := range h.names {
		if err := h.models[client].compare(ctx, h.store, client); err != nil {
			return err
		}
	}
	return nil
}

// change draws a change. URLs repeat, times do not.
func (h *historian) change() webhookcfg.Change {
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
