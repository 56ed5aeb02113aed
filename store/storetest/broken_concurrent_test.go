package storetest_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
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
			pause()
		}
		return s.Apply(ctx, c)
	}}
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
		pause()
		s.edit(c.Client, func(configuration) configuration { return cfg.after(c) })
		return nil
	}}
}

// dropsChunks drops the overrides in chunks when all are changed. It calls between after each
// chunk, and stops if that returns an error. Other changes wait.
func dropsChunks(s *simple, size int, between func(ctx context.Context) error) webhookcfg.Store {
	changing := newGate()
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
					if n < size {
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

func pauseNil(context.Context) error {
	pause()
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
		pause()
		s.edit(c.Client, func(cfg configuration) configuration {
			next := configuration{before, cfg.overrides}.after(c)
			return configuration{cfg.base, next.overrides}
		})
		return nil
	}}
}

// flights are the reads in progress of a handle.
type flights struct {
	mu  sync.Mutex
	all map[string]*flight
}

type flight struct {
	landed chan struct{}
	result any
	err    error
}

// join returns the result of the read in progress with the key, or reads.
func (f *flights) join(key string, read func() (any, error)) (any, error) {
	f.mu.Lock()
	if joined, ok := f.all[key]; ok {
		f.mu.Unlock()
		<-joined.landed
		return joined.result, joined.err
	}
	own := &flight{landed: make(chan struct{})}
	if f.all == nil {
		f.all = make(map[string]*flight)
	}
	f.all[key] = own
	f.mu.Unlock()
	own.result, own.err = read()
	pause()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.all[key] == own {
		delete(f.all, key)
	}
	close(own.landed)
	return own.result, own.err
}

// joinsReads shares a read or a listing in progress with later callers.
func joinsReads(s *simple, reads *flights) broken {
	return broken{
		simple: s,
		resolve: func(ctx context.Context, client, entity string) (webhookcfg.Webhook, error) {
			hook, err := reads.join(fmt.Sprintf("%q %q", client, entity), func() (any, error) { return s.Resolve(ctx, client, entity) })
			return hook.(webhookcfg.Webhook), err
		},
		list: func(ctx context.Context, client, after string, limit int) (webhookcfg.Page, error) {
			page, err := reads.join(fmt.Sprintf("%q %q %d", client, after, limit), func() (any, error) { return s.List(ctx, client, after, limit) })
			return page.(webhookcfg.Page), err
		},
	}
}
