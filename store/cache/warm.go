package cache

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"
)

// Warm reads clients ahead, so that their entities are hits. Call it once before you start
// your senders, with all clients: it first waits for up to two polls, which vouch for what
// it reads. It makes up to half of [Options.MaxReads] reads at a time, and returns when all
// succeeded or one failed. Clients that are too large are not held whole, and
// [Options.MaxBytes] still applies.
//
// If the store is not a [webhookcfg.Lister], the error wraps [errors.ErrUnsupported].
func (c *Cache) Warm(ctx context.Context, clients []string) error {
	if c.reads.lister == nil {
		return fmt.Errorf("cache: warm: the store has no pages: %w", errors.ErrUnsupported)
	}
	for _, client := range clients {
		c.entries.expect(client)
	}
	if err := c.poller.awaitPoll(ctx); err != nil {
		return fmt.Errorf("cache: warm: %w", err)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit((cap(c.reads.turns) + 1) / 2)
	for _, client := range clients {
		if ctx.Err() != nil {
			break
		}
		group.Go(func() error {
			return recoverPanic(ctx, func(ctx context.Context) error {
				_, err := c.reads.do(ctx, key{client, ""}, c.clock.now())
				return err
			})
		})
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("cache: warm: %w", err)
	}
	return nil
}
