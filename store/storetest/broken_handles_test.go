package storetest_test

import (
	"cmp"
	"context"
	"math"
	"sync"

	"example.com/go-webhookcfg/webhookcfg"
)

// brokenHandles are right as long as there is one of them.
func brokenHandles() []flaw {
	return []flaw{
		{"remembers what it saw, until it makes a change itself", "02 a later resolve through another handle sees it too", func(s *simple) webhookcfg.Store {
			return remembers(s, math.MaxInt64)
		}, nil},
		{"remembers what it saw for a while, or until it makes a change itself", "14 a change is seen at one moment through several handles", func(s *simple) webhookcfg.Store {
			return remembers(s, 64)
		}, nil},
		{"has a lock of its own around reading and writing", "14 no concurrent change through several handles is lost", func(s *simple) webhookcfg.Store {
			unsafe := losesUpdates(s)
			var mu sync.Mutex
			return broken{simple: s, apply: func(ctx context.Context, c webhookcfg.Change) error {
				mu.Lock()
				defer mu.Unlock()
				return unsafe.Apply(ctx, c)
			}}
		}, nil},
		{"remembers who has a base", "history through several handles agrees with the model", remembersBases, nil},
	}
}

// remembers is a stale handle that forgets everything with each change of its own.
func remembers(s *simple, every int64) webhookcfg.Store {
	var seen sync.Map
	handle := staleFrom(s, &seen, every)
	handle.apply = func(ctx context.Context, c webhookcfg.Change) error {
		defer seen.Clear()
		return s.Apply(ctx, c)
	}
	return handle
}

// remembersBases turns off what is unset only if this handle has set a base.
func remembersBases(s *simple) webhookcfg.Store {
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
