package storetest_test

import (
	"cmp"
	"context"
	"math"
	"sync"

	"example.com/go-webhookcfg/webhookcfg"
)

// several ends the names of the cases that go through several handles.
const several = ", through several handles"

// brokenHandles are flaws that show only with several handles.
func brokenHandles() []flaw {
	return []flaw{
		{"set-all drops only the overrides that this handle set", "01 a change is applied whole, and nothing else" + several, dropsOwn, nil},
		{"caches what it read until it makes a change itself", "02 a later resolve sees the change" + several, func(s *simple) webhookcfg.Store {
			return caches(s, math.MaxInt64)
		}, nil},
		{"finishes an interrupted set-all with its next call", "03 an interrupted change is whole or absent" + several, finishesLater, nil},
		{"caches what it read for a while, or until it makes a change itself", "14 a change becomes visible at one moment" + several, func(s *simple) webhookcfg.Store {
			return caches(s, 64)
		}, nil},
		{"set-all drops 64 overrides at a time, for which reads through its handle wait", "14 a change becomes visible at one moment" + several, hidesChunks, nil},
		{"joins a read in progress that started before a change through another handle", "02 a later resolve sees the change while others read" + several, ownReads, nil},
		{"locks reading and writing per handle", "14 no concurrent change is lost" + several, func(s *simple) webhookcfg.Store {
			return locksHandle(s, losesUpdates(s))
		}, nil},
		{"reads the base before an unset, which locks its handle", "14 concurrent changes take effect in some order" + several, func(s *simple) webhookcfg.Store {
			return locksHandle(s, readsBaseBefore(s))
		}, nil},
		{"joins a listing in progress that started before a change through another handle", "lister returns one state" + several, ownReads, nil},
		{"caches pages until it makes a change itself", "history agrees with the model" + several, sharesPages, nil},
		{"reports only changes through this handle", "feed reports every change" + several, ownFeed, nil},
		{"counts only changes through this handle", "versioner returns a new version after a change" + several, func(s *simple) webhookcfg.Store {
			return countsVersions(s, func(apply, count func() error) error { return cmp.Or(apply(), count()) })
		}, nil},
		{"caches which clients have a base", "history agrees with the model" + several, cachesBases, nil},
	}
}

// dropsOwn drops only the overrides that were set through this handle since the last time,
// when all are changed.
func dropsOwn(s *simple) webhookcfg.Store {
	own := make(map[string]map[string]bool)
	return edits(s, func(cfg configuration, c webhookcfg.Change) configuration {
		known := own[c.Client]
		if c.Scope.IsAll() {
			delete(own, c.Client)
			return keepWhere(func(_ webhookcfg.Change, hook webhookcfg.Webhook) bool { return !known[hook.URL.Reveal()] })(cfg, c)
		}
		if known == nil {
			known = make(map[string]bool)
			own[c.Client] = known
		}
		next := cfg.after(c)
		known[next.overrides[c.Scope.Entity()].URL.Reveal()] = true
		return next
	})
}

// locksHandle makes one change at a time through each handle.
func locksHandle(s *simple, unsafe webhookcfg.Store) webhookcfg.Store {
	changing := newGate()
	return broken{simple: s, apply: func(ctx context.Context, c webhookcfg.Change) error {
		changing.Lock()
		defer changing.Unlock()
		return unsafe.Apply(ctx, c)
	}}
}

// hidesChunks lets no read through its handle see a part of a change.
func hidesChunks(s *simple) webhookcfg.Store {
	changing := newGate()
	chunks := dropsChunks(s, 64, pauseNil)
	return broken{
		simple: s,
		apply: func(ctx context.Context, c webhookcfg.Change) error {
			changing.Lock()
			defer changing.Unlock()
			return chunks.Apply(ctx, c)
		},
		resolve: func(ctx context.Context, client, entity string) (webhookcfg.Webhook, error) {
			changing.Lock()
			defer changing.Unlock()
			return s.Resolve(ctx, client, entity)
		},
		list: func(ctx context.Context, client, after string, limit int) (webhookcfg.Page, error) {
			changing.Lock()
			defer changing.Unlock()
			return s.List(ctx, client, after, limit)
		},
	}
}

// finishesLater makes half of a set of all whose context ends, and the other half before
// its next call.
func finishesLater(s *simple) webhookcfg.Store {
	var mu sync.Mutex
	half := make(map[string]webhookcfg.Change)
	finish := func(client string) error {
		mu.Lock()
		defer mu.Unlock()
		c, ok := half[client]
		delete(half, client)
		if !ok {
			return nil
		}
		return s.Apply(context.Background(), c)
	}
	return broken{
		simple: s,
		apply: func(ctx context.Context, c webhookcfg.Change) error {
			if err := cmp.Or(c.Validate(), ctx.Err(), finish(c.Client)); err != nil {
				return err
			}
			if !c.Scope.IsAll() || ctx.Err() == nil {
				return s.Apply(ctx, c)
			}
			mu.Lock()
			defer mu.Unlock()
			s.edit(c.Client, func(cfg configuration) configuration { return setBase(cfg, c) })
			half[c.Client] = c
			return ctx.Err()
		},
		resolve: func(ctx context.Context, client, entity string) (webhookcfg.Webhook, error) {
			if err := finish(client); err != nil {
				return webhookcfg.Webhook{}, err
			}
			return s.Resolve(ctx, client, entity)
		},
	}
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

// ownReads joins reads in progress, but none that started before a change through this handle.
func ownReads(s *simple) webhookcfg.Store {
	var reads flights
	handle := joinsReads(s, &reads)
	handle.apply = func(ctx context.Context, c webhookcfg.Change) error {
		reads.mu.Lock()
		defer reads.mu.Unlock()
		clear(reads.all)
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
