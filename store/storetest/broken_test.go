package storetest_test

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/store/admin"
	"example.com/go-webhookcfg/store/cache"
	"example.com/go-webhookcfg/store/storetest"
	"example.com/go-webhookcfg/webhookcfg"
)

// The methods of a store.
type (
	applyFunc   = func(ctx context.Context, c webhookcfg.Change) error
	resolveFunc = func(ctx context.Context, client, entity string) (webhookcfg.Webhook, error)
	listFunc    = func(ctx context.Context, client, after string, limit int) (webhookcfg.Page, error)
	changesFunc = func(ctx context.Context, since string) (cache.Changes, error)
	versionFunc = func(ctx context.Context, clients []string) ([]string, error)
	clientsFunc = func(ctx context.Context, cursor string, limit int) (admin.ClientPage, error)
	eraseFunc   = func(ctx context.Context, client string) error
	notifyFunc  = func(ctx context.Context) <-chan struct{}
)

// broken is a simple store with some methods replaced. Those that are nil are correct.
type broken struct {
	*simple
	apply   applyFunc
	resolve resolveFunc
	list    listFunc
	clients clientsFunc
	erase   eraseFunc

	changes  changesFunc
	versions versionFunc
	notify   notifyFunc
}

func (b broken) Apply(ctx context.Context, c webhookcfg.Change) error {
	tick()
	if b.apply != nil {
		return b.apply(ctx, c)
	}
	return b.simple.Apply(ctx, c)
}

func (b broken) Resolve(ctx context.Context, client, entity string) (webhookcfg.Webhook, error) {
	tick()
	if b.resolve != nil {
		return b.resolve(ctx, client, entity)
	}
	return b.simple.Resolve(ctx, client, entity)
}

func (b broken) List(ctx context.Context, client, after string, limit int) (webhookcfg.Page, error) {
	tick()
	if b.list != nil {
		return b.list(ctx, client, after, limit)
	}
	return b.simple.List(ctx, client, after, limit)
}

func (b broken) ListClients(ctx context.Context, cursor string, limit int) (admin.ClientPage, error) {
	tick()
	if b.clients != nil {
		return b.clients(ctx, cursor, limit)
	}
	return b.simple.ListClients(ctx, cursor, limit)
}

func (b broken) Erase(ctx context.Context, client string) error {
	tick()
	if b.erase != nil {
		return b.erase(ctx, client)
	}
	return b.simple.Erase(ctx, client)
}

func (b broken) Changes(ctx context.Context, since string) (cache.Changes, error) {
	tick()
	if b.changes != nil {
		return b.changes(ctx, since)
	}
	return b.simple.Changes(ctx, since)
}

func (b broken) Versions(ctx context.Context, clients []string) ([]string, error) {
	tick()
	if b.versions != nil {
		return b.versions(ctx, clients)
	}
	return b.simple.Versions(ctx, clients)
}

func (b broken) Notify(ctx context.Context) <-chan struct{} {
	if b.notify != nil {
		return b.notify(ctx)
	}
	return b.simple.Notify(ctx)
}

// Each call of a broken store takes some of its bubble's time, and a pause takes that of many
// calls. So while a flaw pauses, everybody else makes calls, no matter how busy the machine is.
// The times are random, or callers would stay in step. Nobody may hold a Mutex for a pause: the
// time of a bubble stands still while a goroutine waits for one.
func tick()  { time.Sleep(rand.N(10 * time.Microsecond)) }
func pause() { time.Sleep(100*time.Microsecond + rand.N(100*time.Microsecond)) }

// gate is a Mutex that may be held for a pause.
type gate chan struct{}

func newGate() gate { return make(gate, 1) }

func (g gate) Lock()   { g <- struct{}{} }
func (g gate) Unlock() { <-g }

// edits is a store that changes configurations in another way, but refuses what it must.
func edits(s *simple, change func(cfg configuration, c webhookcfg.Change) configuration) broken {
	return broken{simple: s, apply: func(ctx context.Context, c webhookcfg.Change) error {
		if err := cmp.Or(c.Validate(), ctx.Err()); err != nil {
			return err
		}
		s.edit(c.Client, func(cfg configuration) configuration { return change(cfg, c) })
		return nil
	}}
}

// changes is a store that replaces a change with another one.
func changes(s *simple, other func(c webhookcfg.Change) webhookcfg.Change) broken {
	return broken{simple: s, apply: func(ctx context.Context, c webhookcfg.Change) error {
		return s.Apply(ctx, other(c))
	}}
}

// resolves is a store that returns another webhook.
func resolves(s *simple, other func(hook webhookcfg.Webhook, entity string) webhookcfg.Webhook) broken {
	return broken{simple: s, resolve: func(ctx context.Context, client, entity string) (webhookcfg.Webhook, error) {
		hook, err := s.Resolve(ctx, client, entity)
		return other(hook, entity), err
	}}
}

// lists is a store that returns another page.
func lists(s *simple, other func(page webhookcfg.Page, after string) webhookcfg.Page) broken {
	return broken{simple: s, list: func(ctx context.Context, client, after string, limit int) (webhookcfg.Page, error) {
		page, err := s.List(ctx, client, after, limit)
		return other(page, after), err
	}}
}

// renames is a store that replaces names.
func renames(s *simple, client, entity func(name string) string) broken {
	return broken{
		simple: s,
		apply: func(ctx context.Context, c webhookcfg.Change) error {
			c.Client = client(c.Client)
			if name := c.Scope.Entity(); name != "" {
				c.Scope = webhookcfg.Entity(entity(name))
			}
			return s.Apply(ctx, c)
		},
		resolve: func(ctx context.Context, c, e string) (webhookcfg.Webhook, error) {
			return s.Resolve(ctx, client(c), entity(e))
		},
	}
}

func unchanged(name string) string { return name }

// forgetsOff is a store in which an unset entity falls back to the base.
func forgetsOff(s *simple) webhookcfg.Store {
	return edits(s, func(cfg configuration, c webhookcfg.Change) configuration {
		cfg = cfg.after(c)
		if c.URL.IsZero() {
			delete(cfg.overrides, c.Scope.Entity())
		}
		return cfg
	})
}

// flaw is a way to break a store.
type flaw struct {
	name   string
	caught string // the name of the case that must detect it
	// store returns a handle. It is called once per handle.
	store  func(s *simple) webhookcfg.Store
	reopen func(s *simple) *simple // also after a crash; nil if correct
}

// check runs a case on a store with the flaw.
func (f flaw) check(t *testing.T, c storetest.Case) error {
	t.Helper()
	return c.Check(t.Context(), f.env())
}

// env returns an empty store with the flaw.
func (f flaw) env() storetest.Env {
	correct := newSimple()
	reopen := func(webhookcfg.Store) webhookcfg.Store {
		if f.reopen != nil {
			correct = f.reopen(correct)
		} else {
			correct = correct.reopened()
		}
		return f.store(correct)
	}
	return storetest.Env{
		Seed:     1,
		Store:    f.store(correct),
		Reopen:   reopen,
		Crash:    reopen,
		OpenPeer: func(webhookcfg.Store) webhookcfg.Store { return f.store(correct) },
	}
}

// TestBrokenStores: each flaw is found by the case that it names, and each case finds a flaw.
// Run it with -v to read the messages.
func TestBrokenStores(t *testing.T) {
	caught := make(map[string]bool)
	for _, f := range slices.Concat(brokenChanges(), brokenValues(), brokenNames(), brokenRefusals(), brokenContexts(), brokenLists(), brokenClients(), brokenErasers(), brokenPieces(), brokenCrashes(), brokenHandles(), brokenFeeds(), brokenVersions(), brokenNotifiers(), brokenBackends()) {
		t.Run(f.name, func(t *testing.T) {
			for _, c := range storetest.Cases() {
				// Without -full, a case through several handles has to find one flaw.
				isSeveral := c.Name == f.caught+several && (*full || !caught[c.Name])
				if c.Name != f.caught && !isSeveral {
					continue
				}
				var err error
				synctest.Test(t, func(t *testing.T) { err = f.check(t, c) })
				if err == nil || errors.Is(err, storetest.ErrAbsent) {
					if c.Name == f.caught { // through several handles, a case can have fewer names and overrides
						t.Errorf("not caught by %q: %v", c.Name, err)
					}
					continue
				}
				if !strings.Contains(err.Error(), c.Rule) {
					t.Errorf("the error does not contain the rule: %v", err)
				}
				t.Log(err)
				caught[c.Name] = true
			}
		})
	}
	for _, c := range storetest.Cases() {
		if !caught[c.Name] {
			t.Errorf("no flaw is detected by %q", c.Name)
		}
	}
}

func asIs(s *simple) webhookcfg.Store { return s }
