package cache

import (
	"context"
	"errors"
	"fmt"

	"example.com/go-webhookcfg/store/admin"
	"example.com/go-webhookcfg/webhookcfg"
)

// Store returns the cache as a [webhookcfg.Store], for the handler of a process that
// also sends. It complies with all clauses of webhookcfg.Store for changes that are made
// through it: they are visible to every Resolve that starts after Apply returned
// nil. A change made elsewhere, or one for which Apply returned an error, becomes
// visible within the bound. The Store is a [webhookcfg.Lister] exactly if the store
// behind it is. Lists are not cached. Package admin lists clients and erases them through it,
// if the store behind it supports that.
func (c *Cache) Store() webhookcfg.Store {
	s := cachedStore{Cache: c}
	s.clientLister, _ = c.reads.store.(admin.ClientLister)
	s.eraser, _ = c.reads.store.(admin.Eraser)
	if lister, ok := c.reads.store.(webhookcfg.Lister); ok {
		return listingStore{s, lister}
	}
	return s
}

// cachedStore adds Apply to a Cache. Cache itself has none, because a handler would accept
// it as a store that cannot list.
type cachedStore struct {
	*Cache
	clientLister admin.ClientLister // nil if the store is none, as is eraser
	eraser       admin.Eraser
}

// Apply implements [webhookcfg.Store]. While it runs, nothing about the client is kept
// or shared: some callers would see the change, and later ones would not.
func (s cachedStore) Apply(ctx context.Context, change webhookcfg.Change) error {
	if s.ctx.Err() != nil {
		return ErrClosed
	}
	s.reads.startChange(change.Client)
	defer s.reads.endChange(change.Client)
	return s.reads.store.Apply(ctx, change)
}

// ListClients implements [admin.ClientLister] if the store behind the cache does.
func (s cachedStore) ListClients(ctx context.Context, cursor string, limit int) (admin.ClientPage, error) {
	if s.ctx.Err() != nil {
		return admin.ClientPage{}, ErrClosed
	}
	if s.clientLister == nil {
		return admin.ClientPage{}, fmt.Errorf("cache: list of clients: %w", errors.ErrUnsupported)
	}
	return s.clientLister.ListClients(ctx, cursor, limit)
}

// Erase implements [admin.Eraser] if the store behind the cache does.
func (s cachedStore) Erase(ctx context.Context, client string) error {
	if s.ctx.Err() != nil {
		return ErrClosed
	}
	if s.eraser == nil {
		return fmt.Errorf("cache: erase: %w", errors.ErrUnsupported)
	}
	return s.eraser.Erase(ctx, client)
}

type listingStore struct {
	cachedStore
	lister webhookcfg.Lister
}

// List implements [webhookcfg.Lister].
func (s listingStore) List(ctx context.Context, client, after string, limit int) (webhookcfg.Page, error) {
	if s.ctx.Err() != nil {
		return webhookcfg.Page{}, ErrClosed
	}
	return s.lister.List(ctx, client, after, limit)
}
