// Command customstore keeps webhooks in a store of its own. It shows all the code that you
// need to use your storage: an implementation of [webhookcfg.Store].
package main

import (
	"context"
	"log"
	"net/http"
	"sync"

	"example.com/go-webhookcfg/auth"
	"example.com/go-webhookcfg/webhookcfg"
)

// Store keeps the configurations in Go maps, so they're lost when the process ends. The zero
// value is an empty store.
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

func main() {
	clients, err := auth.NewStatic(auth.Credential{ID: "acme", Secrets: []auth.Secret{auth.NewSecret("a-long-random-secret")}})
	if err != nil {
		log.Fatal(err)
	}
	hooks, err := webhookcfg.NewHandler(new(Store), clients, nil)
	if err != nil {
		log.Fatal(err)
	}
	log.Print("listening on http://127.0.0.1:8080")
	log.Fatal(http.ListenAndServe("127.0.0.1:8080", hooks))
}
