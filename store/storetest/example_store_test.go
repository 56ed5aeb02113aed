package storetest_test

import (
	"context"
	"sync"
	"testing"

	"example.com/go-webhookcfg/store/storetest"
	"example.com/go-webhookcfg/webhookcfg"
)

// Store keeps configurations in Go maps, so they're lost when the process ends. Its two methods are
// all that a [webhookcfg.Store] needs.
type Store struct {
	mu      sync.Mutex
	clients map[string]configuration
}

type configuration struct {
	base      webhookcfg.Webhook
	overrides map[string]webhookcfg.Webhook
}

// Apply implements [webhookcfg.Store].
func (s *Store) Apply(ctx context.Context, c webhookcfg.Change) error {
	if err := c.Validate(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.clients == nil {
		s.clients = make(map[string]configuration)
	}
	s.clients[c.Client] = s.clients[c.Client].after(c)
	return nil
}

// after returns the configuration after a change.
func (cfg configuration) after(c webhookcfg.Change) configuration {
	set := !c.URL.IsZero()
	hook := webhookcfg.Webhook{URL: c.URL, Since: c.Time}
	entity := c.Scope.Entity()
	if cfg.overrides == nil || c.Scope.IsAll() {
		cfg.overrides = make(map[string]webhookcfg.Webhook) // set-all and unset-all drop every override
	}
	switch {
	case c.Scope.IsAll() && set:
		hook.Source = webhookcfg.SourceBase
		cfg.base = hook
	case c.Scope.IsAll():
		cfg.base = webhookcfg.Webhook{}
	case set:
		hook.Source = webhookcfg.SourceOverride
		cfg.overrides[entity] = hook
	case cfg.base.Source == webhookcfg.SourceBase: // the base would be in effect otherwise
		hook.Source = webhookcfg.SourceOff
		cfg.overrides[entity] = hook
	default:
		delete(cfg.overrides, entity)
	}
	return cfg
}

// Resolve implements [webhookcfg.Store].
func (s *Store) Resolve(ctx context.Context, client, entity string) (webhookcfg.Webhook, error) {
	if client == "" || entity == "" {
		return webhookcfg.Webhook{}, webhookcfg.ErrInvalidArgument
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	cfg := s.clients[client]
	if hook, ok := cfg.overrides[entity]; ok {
		return hook, ctx.Err()
	}
	return cfg.base, ctx.Err()
}

// A whole store of your own, and its test.
func ExampleRun() {
	var t *testing.T // the argument of TestStore

	storetest.Run(t, storetest.Harness{
		Open: func(testing.TB) webhookcfg.Store { return new(Store) },
	})
}
