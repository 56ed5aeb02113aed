package storetest_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"example.com/go-webhookcfg/webhookcfg"
)

// simple is a store that keeps every rule in the plainest way. It calls itself
// durable: reopened returns a store with the same state. Tests break it in one
// place each.
type simple struct {
	mu      sync.RWMutex
	clients map[string]configuration
}

type configuration struct {
	base      webhookcfg.Webhook
	overrides map[string]webhookcfg.Webhook
}

func newSimple() *simple { return &simple{clients: make(map[string]configuration)} }

func (s *simple) reopened() *simple {
	s.mu.RLock()
	defer s.mu.RUnlock()
	next := newSimple()
	for client, cfg := range s.clients {
		next.clients[client] = cfg.clone()
	}
	return next
}

func (cfg configuration) clone() configuration {
	overrides := make(map[string]webhookcfg.Webhook)
	maps.Copy(overrides, cfg.overrides)
	return configuration{cfg.base, overrides}
}

func (s *simple) Apply(ctx context.Context, c webhookcfg.Change) error {
	if err := c.Validate(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	s.edit(c.Client, func(cfg configuration) configuration { return cfg.after(c) })
	return nil
}

// edit replaces the configuration of a client by what change makes of a copy.
func (s *simple) edit(client string, change func(configuration) configuration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clients[client] = change(s.clients[client].clone())
}

func (cfg configuration) after(c webhookcfg.Change) configuration {
	hook := webhookcfg.Webhook{URL: c.URL, Since: c.Time}
	entity := c.Scope.Entity()
	switch set := !c.URL.IsZero(); {
	case c.Scope.IsAll() && set:
		hook.Source = webhookcfg.SourceBase
		return configuration{base: hook}
	case c.Scope.IsAll():
		return configuration{}
	case set:
		hook.Source = webhookcfg.SourceOverride
		cfg.overrides[entity] = hook
	case cfg.base.Source == webhookcfg.SourceBase:
		hook.Source = webhookcfg.SourceOff
		cfg.overrides[entity] = hook
	default:
		delete(cfg.overrides, entity)
	}
	return cfg
}

func (s *simple) Resolve(ctx context.Context, client, entity string) (webhookcfg.Webhook, error) {
	if client == "" || entity == "" {
		return webhookcfg.Webhook{}, fmt.Errorf("%w: resolve of %q / %q", webhookcfg.ErrInvalidArgument, client, entity)
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if hook, ok := s.clients[client].overrides[entity]; ok {
		return hook, ctx.Err()
	}
	return s.clients[client].base, ctx.Err()
}

func (s *simple) List(ctx context.Context, client, after string, limit int) (webhookcfg.Page, error) {
	if client == "" || limit < 1 {
		return webhookcfg.Page{}, fmt.Errorf("%w: list of %q, limit %d", webhookcfg.ErrInvalidArgument, client, limit)
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	page := webhookcfg.Page{Base: s.clients[client].base}
	for _, entity := range slices.Sorted(maps.Keys(s.clients[client].overrides)) {
		switch {
		case entity <= after:
		case len(page.Overrides) == limit:
			page.Next = page.Overrides[limit-1].Entity
			return page, ctx.Err()
		default:
			page.Overrides = append(page.Overrides, webhookcfg.Override{Entity: entity, Webhook: s.clients[client].overrides[entity]})
		}
	}
	return page, ctx.Err()
}
