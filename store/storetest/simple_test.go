package storetest_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"example.com/go-webhookcfg/store/admin"
	"example.com/go-webhookcfg/store/cache"
	"example.com/go-webhookcfg/webhookcfg"
)

// simple is a store that follows every rule in the simplest way. It counts as durable,
// because reopened returns a store with the same state. Each flaw modifies it in one place.
// All handles are the same store, so a flaw of one handle keeps its own state.
type simple struct {
	mu      sync.RWMutex
	clients map[string]configuration

	// changed lists the client of each change. A cursor consists of opening and the
	// number of changes reported so far.
	opening  string
	changed  []string
	versions map[string]int
	channels map[chan struct{}]bool

	named sync.Map // pairs of a client and an entity, for flaws that remember them
}

func newSimple() *simple {
	return &simple{
		opening:  rand.Text(),
		clients:  make(map[string]configuration),
		versions: make(map[string]int),
		channels: make(map[chan struct{}]bool),
	}
}

func (s *simple) reopened() *simple {
	s.mu.RLock()
	defer s.mu.RUnlock()
	next := newSimple()
	for client, cfg := range s.clients {
		next.clients[client] = cfg.clone()
	}
	maps.Copy(next.versions, s.versions)
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

// edit replaces the configuration of a client with the result of change, which may modify
// its argument.
func (s *simple) edit(client string, change func(configuration) configuration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	cfg := s.clients[client]
	if cfg.overrides == nil {
		cfg.overrides = make(map[string]webhookcfg.Webhook)
	}
	s.clients[client] = change(cfg)
	s.versions[client]++
	s.changed = append(s.changed, client)
	for channel := range s.channels {
		select {
		case channel <- struct{}{}:
		default:
		}
	}
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

func (s *simple) ListClients(ctx context.Context, cursor string, limit int) (admin.ClientPage, error) {
	after, known := strings.CutPrefix(cursor, "after ")
	if limit < 1 || !known && cursor != "" {
		return admin.ClientPage{}, fmt.Errorf("%w: list of clients after %q, limit %d", webhookcfg.ErrInvalidArgument, cursor, limit)
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	var page admin.ClientPage
	for _, client := range slices.Sorted(maps.Keys(s.clients)) {
		switch {
		case client <= after || s.clients[client].isEmpty():
		case len(page.Clients) == limit:
			page.Next = "after " + page.Clients[limit-1]
			return page, ctx.Err()
		default:
			page.Clients = append(page.Clients, client)
		}
	}
	return page, ctx.Err()
}

func (cfg configuration) isEmpty() bool {
	return cfg.base.Source == webhookcfg.SourceNone && len(cfg.overrides) == 0
}

func (s *simple) Erase(ctx context.Context, client string) error {
	if client == "" {
		return fmt.Errorf("%w: erase without a client", webhookcfg.ErrInvalidArgument)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.clients[client].isEmpty() && ctx.Err() == nil {
		delete(s.clients, client)
	}
	return ctx.Err()
}

func (s *simple) Changes(ctx context.Context, since string) (cache.Changes, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	changes := cache.Changes{Next: fmt.Sprint(s.opening, ".", len(s.changed))}
	opening, digits, _ := strings.Cut(since, ".")
	reported, err := strconv.Atoi(digits)
	if err != nil || opening != s.opening {
		changes.Reset = true
	} else {
		changes.Clients = slices.Clone(s.changed[reported:])
	}
	return changes, ctx.Err()
}

func (s *simple) Versions(ctx context.Context, clients []string) ([]string, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	all := make([]string, len(clients))
	for n, client := range clients {
		all[n] = strconv.Itoa(s.versions[client])
	}
	return all, ctx.Err()
}

func (s *simple) Notify(ctx context.Context) <-chan struct{} {
	channel := make(chan struct{}, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.channels[channel] = true
	context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.channels, channel)
		close(channel)
	})
	return channel
}
