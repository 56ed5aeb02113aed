package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"example.com/go-webhookcfg/store/admin"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver/outbox"
	"example.com/go-webhookcfg/webhookcfg/sent"
)

// printGivenUp prints the notifications that were given up.
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
			if _, err := fmt.Fprintln(stdout, e.Client, e.Entity, e.ID, e.Attempts, e.Reason); err != nil {
				return err
			}
		}
		if query.After = page.Next; query.After == "" {
			return nil
		}
	}
}

// replay sends notifications again, as a client does in the portal: those that were given up or
// dropped, and those that would wait for a further attempt. Without a client, it does so for
// each that has a webhook. It only starts that, and the service does it, now or when it runs.
func (d *database) replay(ctx context.Context, cfg config, stdout io.Writer) error {
	selection := sent.Selection{Scope: webhookcfg.All(), Since: cfg.since}
	if cfg.name != "" {
		selection.Scope = webhookcfg.Entity(cfg.name)
	}
	if cfg.client != "" {
		err := d.sendAgain(ctx, cfg.client, selection, stdout)
		if errors.Is(err, errNothing) {
			_, err = fmt.Fprintf(stdout, "%s: nothing to send again\n", cfg.client)
		}
		return err
	}
	if cfg.since.IsZero() {
		return errors.New("replay of all clients would send everything that was dropped in 30 days: give -since")
	}
	var all error
	for client, err := range admin.Clients(ctx, d.webhooks) {
		if err == nil {
			err = d.sendAgain(ctx, client, selection, stdout)
		}
		if errors.Is(err, errNothing) {
			continue
		}
		all = errors.Join(all, err)
		var soon interface{ RetryAfter() time.Duration } // of this client alone
		if err != nil && !errors.As(err, &soon) {
			break
		}
	}
	return all
}

var errNothing = errors.New("nothing to send again")

// sendAgain returns errNothing if there's nothing. The queue looks at a bounded number of
// notifications before it starts, so it can be that there's more than it has counted.
func (d *database) sendAgain(ctx context.Context, client string, selection sent.Selection, stdout io.Writer) error {
	plan, err := d.queue.PlanSendAgain(ctx, client, selection)
	if err == nil && plan.Count == 0 && !plan.IsMore {
		err = errNothing
	}
	if err != nil {
		return err
	}
	if err := d.queue.SendAgain(ctx, client, selection); err != nil {
		return fmt.Errorf("%q: %w", client, err)
	}
	more := ""
	if plan.IsMore {
		more = " or more"
	}
	_, err = fmt.Fprintf(stdout, "%s: %d%s\n", client, plan.Count, more)
	return err
}
