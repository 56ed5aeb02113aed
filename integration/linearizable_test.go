// Package integration holds the tests that need what no user of the module
// should inherit: checkers, drivers and servers of other people.
package integration

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
	"github.com/anishathalye/porcupine"
)

const (
	client   = "acme"
	entities = 3
)

// input is one operation of a history.
type input struct {
	resolve bool
	entity  int    // entities: all of them
	url     string // "": unset
}

// output is what a resolve saw; empty for a change.
type output struct {
	source webhookcfg.Source
	url    string
}

// state is the configuration of one client over the entities 0, 1 and 2. An
// override is "", a URL, or off.
type state struct {
	base      string
	overrides [entities]string
}

const off = "off"

func (s state) after(in input) state {
	switch {
	case in.entity == entities:
		return state{base: in.url}
	case in.url == "" && s.base != "":
		s.overrides[in.entity] = off
	default:
		s.overrides[in.entity] = in.url
	}
	return s
}

func (s state) resolve(entity int) output {
	switch override := s.overrides[entity]; {
	case override == off:
		return output{source: webhookcfg.SourceOff}
	case override != "":
		return output{webhookcfg.SourceOverride, override}
	case s.base != "":
		return output{webhookcfg.SourceBase, s.base}
	}
	return output{}
}

var model = porcupine.Model{
	Init: func() any { return state{} },
	Step: func(s, in, out any) (bool, any) {
		before, op := s.(state), in.(input)
		if op.resolve {
			return before.resolve(op.entity) == out.(output), before
		}
		return true, before.after(op)
	},
}

// history runs random operations of that many goroutines on one client.
func history(t *testing.T, st webhookcfg.Store, goroutines, each int) []porcupine.Operation {
	t.Helper()
	start := time.Now()
	var mu sync.Mutex
	var all []porcupine.Operation
	var group sync.WaitGroup
	for g := range goroutines {
		group.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), rand.Uint64()))
			for n := range each {
				in := randomInput(r, fmt.Sprintf("https://h.example.com/%d/%d", g, n))
				called := time.Since(start)
				out, err := do(st, in)
				returned := time.Since(start)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				all = append(all, porcupine.Operation{ClientId: g, Input: in, Output: out, Call: int64(called), Return: int64(returned)})
				mu.Unlock()
			}
		})
	}
	group.Wait()
	return all
}

func randomInput(r *rand.Rand, url string) input {
	in := input{entity: r.IntN(entities)}
	switch r.IntN(8) {
	case 0, 1:
		in.url = url
	case 2: // unset one
	case 3:
		in.entity, in.url = entities, url
	case 4:
		in.entity = entities
		if r.IntN(4) > 0 {
			in.url = url
		}
	default:
		in.resolve = true
	}
	return in
}

func do(st webhookcfg.Store, in input) (output, error) {
	ctx := context.Background()
	entity := fmt.Sprint("e", in.entity)
	if in.resolve {
		hook, err := st.Resolve(ctx, client, entity)
		return output{hook.Source, hook.URL.Reveal()}, err
	}
	scope := webhookcfg.Entity(entity)
	if in.entity == entities {
		scope = webhookcfg.All()
	}
	if in.url == "" {
		return output{}, st.Apply(ctx, webhookcfg.Unset(client, scope))
	}
	return output{}, st.Apply(ctx, webhookcfg.Set(client, scope, egress.NewURL(in.url)))
}

var errUndecided = errors.New("the checker gave up")

// linearizable checks a history within bounded time.
func linearizable(ops []porcupine.Operation) (bool, error) {
	switch porcupine.CheckOperationsTimeout(model, ops, time.Minute) {
	case porcupine.Ok:
		return true, nil
	case porcupine.Illegal:
		return false, nil
	default:
		return false, errUndecided
	}
}

func TestMemoryIsLinearizable(t *testing.T) {
	for round := range 50 {
		ops := history(t, store.NewMemory(), 32, 30)
		if ok, err := linearizable(ops); !ok || err != nil {
			t.Fatalf("round %d of %d operations: linearizable %v, %v", round, len(ops), ok, err)
		}
	}
}

// halfway is a store whose set-all and unset-all happen in two steps, with a gap
// in which others see the half.
type halfway struct{ webhookcfg.Store }

func (h halfway) Apply(ctx context.Context, c webhookcfg.Change) error {
	if !c.Scope.IsAll() {
		return h.Store.Apply(ctx, c)
	}
	for entity := range entities {
		if err := h.Store.Apply(ctx, webhookcfg.Unset(c.Client, webhookcfg.Entity(fmt.Sprint("e", entity)))); err != nil {
			return err
		}
	}
	return h.Store.Apply(ctx, c)
}

// forgetful is a store that answers some resolves from what it saw before.
type forgetful struct {
	webhookcfg.Store
	mu   sync.Mutex
	last map[string]webhookcfg.Webhook
}

func (f *forgetful) Resolve(ctx context.Context, client, entity string) (webhookcfg.Webhook, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if hook, ok := f.last[entity]; ok && rand.IntN(3) == 0 {
		return hook, nil
	}
	hook, err := f.Store.Resolve(ctx, client, entity)
	f.last[entity] = hook
	return hook, err
}

// TestCheckerCatches runs the check against stores that are not linearizable: if
// it passed them, its passing the others would mean nothing.
func TestCheckerCatches(t *testing.T) {
	broken := map[string]func() webhookcfg.Store{
		"halfway":   func() webhookcfg.Store { return halfway{store.NewMemory()} },
		"forgetful": func() webhookcfg.Store { return &forgetful{Store: store.NewMemory(), last: make(map[string]webhookcfg.Webhook)} },
	}
	for name, open := range broken {
		t.Run(name, func(t *testing.T) {
			for range 50 {
				if ok, err := linearizable(history(t, open(), 32, 30)); !ok && err == nil {
					return
				}
			}
			t.Error("never caught")
		})
	}
}
