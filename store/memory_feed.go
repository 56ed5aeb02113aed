package store

import (
	"context"
	"fmt"
	"slices"

	"example.com/go-webhookcfg/store/cache"
)

var (
	_ cache.Feed     = (*Memory)(nil)
	_ cache.Notifier = (*Memory)(nil)
)

// Changes implements [cache.Feed]. From the first call on the store remembers
// the names of the clients that changed; who is more than 4,096 names behind gets a
// Reset.
func (m *Memory) Changes(ctx context.Context, since string) (cache.Changes, error) {
	if err := ctx.Err(); err != nil {
		return cache.Changes{}, fmt.Errorf("store: changes: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.journal.since(since), nil
}

// Notify implements [cache.Notifier]. The hint comes with the change; ctx must end
// at some time, as the store keeps the channel until then.
func (m *Memory) Notify(ctx context.Context) <-chan struct{} {
	hint := make(chan struct{}, 1)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.journal.hints = append(m.journal.hints, hint)
	context.AfterFunc(ctx, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.journal.hints = slices.DeleteFunc(m.journal.hints, func(h chan struct{}) bool { return h == hint })
		close(hint)
	})
	return hint
}
