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
	kind   kind
	entity int    // entities: all of them
	url    string // "": unset
	at     int64  // the time of a change, its own alone
}

type kind int

const (
	change kind = iota
	resolve
	list
)

// output is what a resolve or a list saw; empty for a change.
type output struct {
	source webhookcfg.Source
	entry  entry
	page   state
}

// entry is a base or an override, off if it has a time and no URL. The time tells
// which change made it, so that the checker has few orders to try.
type entry struct {
	url string
	at  int64
}

// state is the configuration of one client over the entities 0, 1 and 2.
type state struct {
	base      entry
	overrides [entities]entry
}

func (s state) after(in input) state {
	made := entry{in.url, in.at}
	switch {
	case in.entity == entities && in.url == "":
		return state{}
	case in.entity == entities:
		return state{base: made}
	case in.url == "" && s.base == entry{}:
		made = entry{}
	}
	s.overrides[in.entity] = made
	return s
}

func (s state) resolve(e int) output {
	switch override := s.overrides[e]; {
	case override.url != "":
		return output{source: webhookcfg.SourceOverride, entry: override}
	case override.at != 0:
		return output{source: webhookcfg.SourceOff, entry: override}
	case s.base.url != "":
		return output{source: webhookcfg.SourceBase, entry: s.base}
	}
	return output{}
}

var model = porcupine.Model{
	Init: func() any { return state{} },
	Step: func(s, in, out any) (bool, any) {
		before, op := s.(state), in.(input)
		switch op.kind {
		case resolve:
			return before.resolve(op.entity) == out.(output), before
		case list:
			return output{page: before} == out.(output), before
		default:
			return true, before.after(op)
		}
	},
}

// history runs random operations of many goroutines on one client.
func history(t *testing.T, st sharedStore) []porcupine.Operation {
	t.Helper()
	start := time.Now()
	all := make([]porcupine.Operation, goroutines*each)
	var group sync.WaitGroup
	for g := range goroutines {
		group.Go(func() {
			for n := g * each; n < (g+1)*each; n++ {
				in := randomInput(int64(n + 1))
				called := time.Since(start)
				out, err := do(st, in)
				returned := time.Since(start)
				if err != nil {
					t.Error(err)
				}
				all[n] = porcupine.Operation{ClientId: g, Input: in, Output: out, Call: int64(called), Return: int64(returned)}
			}
		})
	}
	group.Wait()
	return all
}

func randomInput(at int64) input {
	in := input{entity: rand.IntN(entities), at: at}
	switch rand.IntN(10) {
	case 0, 1, 2:
		if rand.IntN(3) == 0 {
			in.entity = entities
		}
		if rand.IntN(3) > 0 {
			in.url = fmt.Sprintf("https://h.example.com/%d", at)
		}
	case 3, 4:
		in.kind = resolve
	default:
		in.kind = list
	}
	return in
}

// sharedStore is what the histories run on.
type sharedStore interface {
	webhookcfg.Store
	webhookcfg.Lister
}

func do(st sharedStore, in input) (output, error) {
	ctx := context.Background()
	name := fmt.Sprint("e", in.entity)
	switch in.kind {
	case resolve:
		hook, err := st.Resolve(ctx, client, name)
		return output{source: hook.Source, entry: newEntry(hook)}, err
	case list:
		page, err := st.List(ctx, client, "", entities)
		return output{page: newState(page)}, err
	}
	scope := webhookcfg.Entity(name)
	if in.entity == entities {
		scope = webhookcfg.All()
	}
	c := webhookcfg.Unset(client, scope)
	if in.url != "" {
		c = webhookcfg.Set(client, scope, egress.NewURL(in.url))
	}
	c.Time = time.Unix(in.at, 0)
	return output{}, st.Apply(ctx, c)
}

func newEntry(hook webhookcfg.Webhook) entry {
	if hook.Source == webhookcfg.SourceNone {
		return entry{}
	}
	return entry{hook.URL.Reveal(), hook.Since.Unix()}
}

func newState(page webhookcfg.Page) state {
	s := state{base: newEntry(page.Base)}
	for _, o := range page.Overrides {
		s.overrides[o.Entity[1]-'0'] = newEntry(o.Webhook)
	}
	return s
}

var errUndecided = errors.New("the checker gave up")

// linearizable checks a history within bounded time.
func linearizable(ops []porcupine.Operation) (bool, error) {
	switch porcupine.CheckOperationsTimeout(model, ops, 500*time.Millisecond) {
	case porcupine.Ok:
		return true, nil
	case porcupine.Illegal:
		return false, nil
	default:
		return false, errUndecided
	}
}

const (
	goroutines = 32
	each       = 10
	rounds     = 100
)

// TestMemoryIsLinearizable checks many short histories. Where the machine is busy
// too much may overlap for the checker to decide in time; most it must decide.
func TestMemoryIsLinearizable(t *testing.T) {
	undecided := 0
	for round := range rounds {
		ok, err := linearizable(history(t, store.NewMemory()))
		if err != nil {
			undecided++
		} else if !ok {
			t.Fatalf("round %d is not linearizable", round)
		}
	}
	t.Logf("%d histories of %d goroutines, %d operations each; %d undecided", rounds, goroutines, each, undecided)
	if undecided > rounds/4 {
		t.Error("too many undecided to tell")
	}
}

// halfway is a store whose set-all and unset-all happen in two steps, with a gap
// in which others see the half.
type halfway struct{ sharedStore }

func (h halfway) Apply(ctx context.Context, c webhookcfg.Change) error {
	if !c.Scope.IsAll() {
		return h.sharedStore.Apply(ctx, c)
	}
	for entity := range entities {
		if err := h.sharedStore.Apply(ctx, webhookcfg.Unset(c.Client, webhookcfg.Entity(fmt.Sprint("e", entity)))); err != nil {
			return err
		}
	}
	return h.sharedStore.Apply(ctx, c)
}

// forgetful is a store that answers some resolves from what it saw before.
type forgetful struct {
	sharedStore
	mu   sync.Mutex
	last map[string]webhookcfg.Webhook
}

func (f *forgetful) Resolve(ctx context.Context, client, entity string) (webhookcfg.Webhook, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if hook, ok := f.last[entity]; ok && rand.IntN(3) == 0 {
		return hook, nil
	}
	hook, err := f.sharedStore.Resolve(ctx, client, entity)
	f.last[entity] = hook
	return hook, err
}

// TestCheckerCatches runs the check against stores that are not linearizable: if
// it passed them, its passing the others would mean nothing.
func TestCheckerCatches(t *testing.T) {
	broken := map[string]func() sharedStore{
		"halfway": func() sharedStore { return halfway{store.NewMemory()} },
		"forgetful": func() sharedStore {
			return &forgetful{sharedStore: store.NewMemory(), last: make(map[string]webhookcfg.Webhook)}
		},
	}
	for name, open := range broken {
		t.Run(name, func(t *testing.T) {
			for range rounds {
				if ok, err := linearizable(history(t, open())); !ok && err == nil {
					return
				}
			}
			t.Error("never caught")
		})
	}
}
