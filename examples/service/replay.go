package main

import (
	"context"
	"fmt"
	"io"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver/outbox"
)

// printGivenUp prints the notifications that were given up. With the command replay, it also
// sends them once more, with a new schedule. You can do this while the service runs.
func (d *database) printGivenUp(ctx context.Context, cfg config, stdout io.Writer) error {
	query := outbox.Query{State: outbox.GivenUp, Client: cfg.client}
	for {
		page, err := d.queue.List(ctx, query)
		if err != nil {
			return err
		}
		for _, e := range page.Entries {
			if cfg.name != "" && cfg.name != e.Entity || e.Enqueued.Before(cfg.since) {
				continue
			}
			fmt.Fprintln(stdout, e.Client, e.Entity, e.ID, e.Attempts, e.Reason)
			if cfg.command == "replay" {
				if err := d.queue.SendAgain(ctx, e.Client, webhookcfg.Selection{ID: e.ID}); err != nil {
					return err
				}
			}
		}
		if query.After = page.Next; query.After == "" {
			return nil
		}
	}
}
