package cache

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"
)

// Warm reads clients ahead, so that their entities are hits. Call it once, with all clients,
// before you start your senders. It makes up to two polls first, because the first poll of a
// store drops the entries from before. Then it reads with up to half of
// [Options.MaxReads], until it has read all clients or a read fails.
//
// Clients that are too large aren't held as a whole, and [Options.MaxBytes] still applies. If
// the store isn't a [webhookcfg.Lister], the error wraps [errors.ErrUnsupported].
func (c *Cache) Warm(ctx context.Context, clients []string) error {
	if c.reads.lister == nil {
		return fmt.Errorf("cache: warm: the store isn't a webhookcfg.Lister, so its clients can't be read ahead: %w", errors.ErrUnsupported)
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
