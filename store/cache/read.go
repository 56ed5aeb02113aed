package cache

import (
	"context"
	"fmt"
	"strings"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
)

// readTimeout bounds a read of the store: callers share it, and none of them can end it.
const readTimeout = 20 * time.Second

// readResult is the result of a read of the store.
type readResult struct {
	hook    webhookcfg.Webhook
	started instant // before the store was called
}

// read reads the store, or waits for another caller's read that is recent enough for a
// call of the given instant.
func (c *Cache) read(ctx context.Context, client, entity string, called instant) (webhookcfg.Webhook, error) {
	entity = strings.Clone(entity) // the read may outlive the caller, and its buffers
	for {
		owner, err := c.clients.join(client)
		if err != nil {
			return webhookcfg.Webhook{}, err
		}
		if owner == nil {
			c.reads.Add(1)
			return c.store.Resolve(ctx, client, entity)
		}
		r, err := c.share(ctx, owner, entity)
		if err != nil || r.started > called-c.joinable {
			return r.hook, err
		}
		// The timer in fetch was late. That read has ended, so the next one is another.
	}
}

// share reads the store together with the callers of the same entity.
func (c *Cache) share(ctx context.Context, owner *clientEntries, entity string) (readResult, error) {
	defer c.clients.release(owner)
	r, err := owner.reads.Do(ctx, entity, c.readTimeout, func(ctx context.Context) (readResult, error) {
		return c.fetch(ctx, owner, entity)
	})
	switch {
	case err != nil && ctx.Err() != nil:
		err = fmt.Errorf("cache: resolve: %w", ctx.Err())
	case err != nil && c.ctx.Err() != nil:
		err = ErrClosed
	}
	return r, err
}

// fetch reads the store and keeps the result, for all callers that share it.
func (c *Cache) fetch(ctx context.Context, owner *clientEntries, entity string) (r readResult, err error) {
	if err := c.clients.hold(owner); err != nil {
		return r, err
	}
	defer c.clients.release(owner)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.ctx, cancel)()
	defer time.AfterFunc(c.joinable, func() { owner.reads.Forget(entity) }).Stop()
	c.reads.Add(1)
	r.started = c.now()
	r.hook, err = c.store.Resolve(ctx, owner.client, entity)
	if err == nil {
		c.clients.put(owner, entity, r)
	}
	return r, err
}
