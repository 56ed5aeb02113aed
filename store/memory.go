package store

import (
	"context"
	"fmt"
	"sync"

	"example.com/go-webhookcfg/internal/table"
	"example.com/go-webhookcfg/webhookcfg"
)

var (
	_ webhookcfg.Store  = (*Memory)(nil)
	_ webhookcfg.Lister = (*Memory)(nil)
)

// Memory is a [webhookcfg.Store] and [webhookcfg.Lister] in memory. It is not
// durable: its state ends with the process. The zero value is empty and ready. It
// is safe for concurrent use, and must not be copied after first use.
type Memory struct {
	mu    sync.RWMutex
	table table.Table
}

// NewMemory returns an empty store.
func NewMemory() *Memory { return new(Memory) }

// Apply implements [webhookcfg.Store].
func (m *Memory) Apply(ctx context.Context, c webhookcfg.Change) error {
	if err := c.Validate(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.table.Apply(c)
	return nil
}

// Resolve implements [webhookcfg.Store]. It does not allocate.
func (m *Memory) Resolve(ctx context.Context, client, entity string) (webhookcfg.Webhook, error) {
	if client == "" || entity == "" {
		return webhookcfg.Webhook{}, webhookcfg.ErrInvalidArgument
	}
	if err := ctx.Err(); err != nil {
		return webhookcfg.Webhook{}, err
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.table.Resolve(client, entity), nil
}

// List implements [webhookcfg.Lister].
func (m *Memory) List(ctx context.Context, client, after string, limit int) (webhookcfg.Page, error) {
	if client == "" || limit < 1 {
		return webhookcfg.Page{}, fmt.Errorf("%w: list of client %q, limit %d", webhookcfg.ErrInvalidArgument, client, limit)
	}
	if err := ctx.Err(); err != nil {
		return webhookcfg.Page{}, err
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.table.Page(client, after, limit), nil
}
