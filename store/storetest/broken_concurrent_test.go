package storetest_test

import (
	"cmp"
	"context"
	"maps"
	"math"
	"runtime"
	"slices"
	"sync"

	"example.com/go-webhookcfg/webhookcfg"
)

// twoSteps lets readers see half of a set of all.
func twoSteps(s *simple) webhookcfg.Store {
	return broken{simple: s, apply: func(ctx context.Context, c webhookcfg.Change) error {
		if err := cmp.Or(c.Validate(), ctx.Err()); err != nil {
			return err
		}
		if c.Scope.IsAll() {
			s.edit(c.Client, func(cfg configuration) configuration { return setBase(cfg, c) })
			yield()
		}
		return s.Apply(ctx, c)
	}}
}

// yield lets all other goroutines run, several times.
func yield() {
	for range 100 {
		runtime.Gosched()
	}
}

// losesUpdates reads, lets other goroutines write, and writes.
func losesUpdates(s *simple) webhookcfg.Store {
	return broken{simple: s, apply: func(ctx context.Context, c webhookcfg.Change) error {
		if err := cmp.Or(c.Validate(), ctx.Err()); err != nil {
			return err
		}
		s.mu.RLock()
		cfg := s.clients[c.Client].clone()
		s.mu.RUnlock()
		runtime.Gosched()
		s.edit(c.Client, func(configuration) configuration { return cfg.after(c) })
		return nil
	}}
}

// dropsChunks drops the overrides, when all are changed, 64 at a time. Between two times
// it calls between, whose error ends the change; other changes wait.
func dropsChunks(s *simple, between func(ctx context.Context) error) webhookcfg.Store {
	var changing sync.Mutex
	return broken{simple: s, apply: func(ctx context.Context, c webhookcfg.Change) error {
		if err := cmp.Or(c.Validate(), ctx.Err()); err != nil {
			return err
		}
		changing.Lock()
		defer changing.Unlock()
		if !c.Scope.IsAll() {
			return s.Apply(context.WithoutCancel(ctx), c)
		}
		for left := 1; left > 0; {
			s.edit(c.Client, func(cfg configuration) configuration {
				for n, entity := range slices.Sorted(maps.Keys(cfg.overrides)) {
					if n < 64 {
						delete(cfg.overrides, entity)
					}
				}
				left = len(cfg.overrides)
				return setBase(cfg, c)
			})
			if left == 0 {
				break
			}
			if err := between(ctx); err != nil {
				return err
			}
		}
		return nil
	}}
}

func yieldNil(context.Context) error {
	yield()
	return nil
}

// readsBaseBefore decides whether an unset entity is off before it changes it.
func readsBaseBefore(s *simple) webhookcfg.Store {
	return broken{simple: s, apply: func(ctx context.Context, c webhookcfg.Change) error {
		if c.Scope.IsAll() || !c.URL.IsZero() || cmp.Or(c.Validate(), ctx.Err()) != nil {
			return s.Apply(ctx, c)
		}
		s.mu.RLock()
		before := s.clients[c.Client].base
		s.mu.RUnlock()
		yield()
		s.edit(c.Client, func(cfg configuration) configuration {
			next := configuration{before, cfg.overrides}.after(c)
			return configuration{cfg.base, next.overrides}
		})
		return nil
	}}
}

// brokenHandles are flaws that show only with several handles.
func brokenHandles() []flaw {
	return []flaw{
		{"caches what it read until it makes a change itself", "02 a later resolve through another handle sees it too", func(s *simple) webhookcfg.Store {
			return caches(s, math.MaxInt64)
		}, nil},
		{"caches what it read for a while, or until it makes a change itself", "14 a change becomes visible at one moment through several handles", func(s *simple) webhookcfg.Store {
			return caches(s, 64)
		}, nil},
		{"locks reading and writing per handle", "14 no concurrent change through several handles is lost", func(s *simple) webhookcfg.Store {
			return locksHandle(s, losesUpdates(s))
		}, nil},
		{"reads the base before an unset, which locks its handle", "14 concurrent changes through several handles take effect in some order", func(s *simple) webhookcfg.Store {
			return locksHandle(s, readsBaseBefore(s))
		}, nil},
		{"caches pages until it makes a change itself", "lister lists changes through another handle", sharesPages, nil},
		{"caches which clients have a base", "history through several handles agrees with the model", cachesBases, nil},
	}
}

// locksHandle makes one change at a time through each handle.
func locksHandle(s *simple, unsafe webhookcfg.Store) webhookcfg.Store {
	var mu sync.Mutex
	return broken{simple: s, apply: func(ctx context.Context, c webhookcfg.Change) error {
		mu.Lock()
		defer mu.Unlock()
		return unsafe.Apply(ctx, c)
	}}
}

// caches is a stale handle that forgets everything with each change of its own.
func caches(s *simple, every int64) webhookcfg.Store {
	var seen sync.Map
	handle := staleFrom(s, &seen, every)
	handle.apply = func(ctx context.Context, c webhookcfg.Change) error {
		defer seen.Clear()
		return s.Apply(ctx, c)
	}
	return handle
}

// cachesBases turns an entity off only if this handle has set a base.
func cachesBases(s *simple) webhookcfg.Store {
	var mu sync.Mutex
	has := make(map[string]bool)
	return broken{simple: s, apply: func(ctx context.Context, c webhookcfg.Change) error {
		if err := cmp.Or(c.Validate(), ctx.Err()); err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		if c.Scope.IsAll() {
			has[c.Client] = !c.URL.IsZero()
		}
		s.edit(c.Client, func(cfg configuration) configuration {
			next := cfg.after(c)
			if !c.Scope.IsAll() && c.URL.IsZero() && !has[c.Client] {
				delete(next.overrides, c.Scope.Entity())
			}
			return next
		})
		return nil
	}}
}
