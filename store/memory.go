package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"example.com/go-webhookcfg/internal/table"
	"example.com/go-webhookcfg/store/admin"
	"example.com/go-webhookcfg/store/cache"
	"example.com/go-webhookcfg/webhookcfg"
)

var (
	_ webhookcfg.Store   = (*Memory)(nil)
	_ webhookcfg.Lister  = (*Memory)(nil)
	_ admin.ClientLister = (*Memory)(nil)
	_ cache.Feed         = (*Memory)(nil)
	_ cache.Notifier     = (*Memory)(nil)
)

// Memory is a [webhookcfg.Store] and a [webhookcfg.Lister] in memory. The configuration is
// lost when the process ends.
//
// The zero value is an empty store. Don't copy a Memory after its first use. It's safe for
// concurrent use, and no call keeps others waiting for long, even in a large store. For List,
// that time grows with the limit.
//
// Once a client has no webhooks, a Memory keeps nothing of it, except that Changes remembers
// the names of up to 4,096 clients if you use it.
type Memory struct {
	mu      sync.RWMutex
	table   table.Table
	changes changeRing
}

// NewMemory returns an empty store. So does new(Memory).
func NewMemory() *Memory { return new(Memory) }

// Apply implements [webhookcfg.Store].
func (m *Memory) Apply(ctx context.Context, c webhookcfg.Change) error {
	if err := c.Validate(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("store: apply: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.table.Apply(c)
	m.changes.add(c.Client)
	return nil
}

// Resolve implements [webhookcfg.Store].
func (m *Memory) Resolve(ctx context.Context, client, entity string) (webhookcfg.Webhook, error) {
	if client == "" || entity == "" {
		return webhookcfg.Webhook{}, fmt.Errorf("%w: resolve without a client or an entity", webhookcfg.ErrInvalidArgument)
	}
	if err := ctx.Err(); err != nil {
		return webhookcfg.Webhook{}, fmt.Errorf("store: resolve: %w", err)
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.table.Resolve(client, entity), nil
}

// List implements [webhookcfg.Lister]. Each page is consistent, but the client can change
// something between two pages.
func (m *Memory) List(ctx context.Context, client, after string, limit int) (webhookcfg.Page, error) {
	if client == "" || limit < 1 {
		return webhookcfg.Page{}, fmt.Errorf("%w: list without a client, or with a limit below 1", webhookcfg.ErrInvalidArgument)
	}
	if err := ctx.Err(); err != nil {
		return webhookcfg.Page{}, fmt.Errorf("store: list: %w", err)
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.table.Page(client, after, limit), nil
}

// clientCursor starts a cursor of ListClients. The last client's name follows.
const clientCursor = "after "

// ListClients implements [admin.ClientLister], in byte order.
func (m *Memory) ListClients(ctx context.Context, cursor string, limit int) (admin.ClientPage, error) {
	after, known := strings.CutPrefix(cursor, clientCursor)
	if limit < 1 || !known && cursor != "" || known && after == "" {
		return admin.ClientPage{}, fmt.Errorf("%w: list of clients without a limit, or with an unknown cursor", webhookcfg.ErrInvalidArgument)
	}
	var page admin.ClientPage
	for {
		if err := ctx.Err(); err != nil {
			return admin.ClientPage{}, fmt.Errorf("store: list of clients: %w", err)
		}
		step := min(limit-len(page.Clients), stepSize)
		names := m.clientsAfter(after, step)
		page.Clients = append(page.Clients, names...)
		if len(names) < step {
			return page, nil
		}
		after = names[step-1]
		if len(page.Clients) == limit {
			page.Next = clientCursor + after
			return page, nil
		}
	}
}

// stepSize is how many names or changes are collected without releasing the lock.
const stepSize = 128

// clientsAfter returns the first limit names after the given name.
func (m *Memory) clientsAfter(after string, limit int) (names []string) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for name := range m.table.Clients(after) {
		if names = append(names, name); len(names) == limit {
			break
		}
	}
	return names
}

// Changes implements [cache.Feed]. From the first call on, the store remembers the last 4,096
// clients that changed. If your cursor is older than that, you get a Reset.
func (m *Memory) Changes(ctx context.Context, since string) (cache.Changes, error) {
	if err := ctx.Err(); err != nil {
		return cache.Changes{}, fmt.Errorf("store: changes: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.changes.since(since), nil
}

// Notify implements [cache.Notifier]. The notification comes while the change is made. The
// store keeps the channel until ctx ends, and then closes it.
func (m *Memory) Notify(ctx context.Context) <-chan struct{} {
	ch := make(chan struct{}, 1)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.changes.subscribers = append(m.changes.subscribers, ch)
	context.AfterFunc(ctx, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.changes.subscribers = slices.DeleteFunc(m.changes.subscribers, func(c chan struct{}) bool { return c == ch })
		close(ch)
	})
	return ch
}
