package cache

import (
	"context"
	"errors"
	"fmt"

	"example.com/go-webhookcfg/store/admin"
	"example.com/go-webhookcfg/webhookcfg"
)

// Store returns the cache as a [webhookcfg.Store]. Give it to the handler if the process
// serves it and also sends. For changes made through it, all clauses of webhookcfg.Store hold:
// every Resolve that starts after Apply returned nil sees them. Other processes' changes, and
// changes for which Apply returned an error, become visible within MaxStale.
//
// The Store is a [webhookcfg.Lister] if the store behind it is one. Lists aren't cached.
// Package admin can list and erase clients through it if the store behind it can.
func (c *Cache) Store() webhookcfg.Store {
	s := cachedStore{Cache: c}
	s.clientLister, _ = c.reads.store.(admin.ClientLister)
	s.eraser, _ = c.reads.store.(admin.Eraser)
	if lister, ok := c.reads.store.(webhookcfg.Lister); ok {
		return listingStore{s, lister}
	}
	return s
}

// cachedStore adds Apply to a Cache. The Cache itself has no Apply, so that you can't pass it
// to a handler by mistake, as a store that can't list.
type cachedStore struct {
	*Cache
	clientLister admin.ClientLister // nil if the store isn't one, and so is eraser
	eraser       admin.Eraser
}

// Apply implements [webhookcfg.Store]. While it runs, no result about the client is kept or
// shared. Otherwise some callers could see the change, and later ones not.
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
