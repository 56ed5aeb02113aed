package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"example.com/go-webhookcfg/webhookcfg/deliver/outbox"
)

// selection says which given-up notifications a command should work on. The zero value
// selects all.
type selection struct {
	client, entity string
	after, before  time.Time // when the notification was enqueued
}

func (s selection) contains(e outbox.Entry) bool {
	return (s.entity == "" || s.entity == e.Entity) &&
		!e.Enqueued.Before(s.after) && (s.before.IsZero() || e.Enqueued.Before(s.before))
}

// listGivenUp prints the notifications that were given up. If again is set, it also sends
// them once more, with a new schedule. You can do this while the service runs.
func (s *service) listGivenUp(ctx context.Context, selected selection, again bool, stdout io.Writer) error {
	query := outbox.Query{State: outbox.GivenUp, Client: selected.client}
	for {
		page, err := s.queue.List(ctx, query)
		if err != nil {
			return fmt.Errorf("notifications given up: %w", err)
		}
		for _, e := range page.Entries {
			if !selected.contains(e) {
				continue
			}
			fmt.Fprintln(stdout, e.Client, e.Entity, e.ID, e.Attempts, e.Reason)
			if !again {
				continue
			}
			if _, err := s.queue.SendAgain(ctx, e.Client, e.ID); err != nil {
				return fmt.Errorf("replay: %w", err)
			}
		}
		if page.Next == "" {
			return nil
		}
		query.After = page.Next
	}
}
