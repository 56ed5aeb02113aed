package main

import (
	"context"
	"math"
	"slices"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
)

// scope is a client's notifications, of one entity or, if that is "", of all.
type scope struct{ client, entity string }

// recall says that what waits for a scope is to be made due, up to a number.
type recall struct {
	scope
	most int
}

const (
	// soon is how many are made due at once: about as many as a receiver takes until the
	// others are made due.
	soon = 100
	// maxRecalls is the number of recalls that may wait until they are done.
	maxRecalls = 1000
)

// onRecovered makes due what waits for a client whose receiver is available again; it is the
// [deliver.Options.OnRecovered]. An entry of the queue doesn't know its receiver. What waits
// for another one of the client that is still paused is deferred again, which costs little.
func (s *service) onRecovered(_ context.Context, client, _ string) {
	s.recall(scope{client: client})
}

// onEvent makes due what waits for a webhook that was set; it gets all events of
// [webhookcfg.Options.OnEvent]. What waits had its delay from the webhook before.
func (s *service) onEvent(_ context.Context, e webhookcfg.Event) {
	if e.Operation == "set" && e.Code == "" {
		s.recall(scope{e.Client, e.Scope.Entity()})
	}
}

// recall makes due a few notifications soon, and the others when no worker defers them any
// more for the webhook or the pause before. Those that are made due twice lose their turn.
func (s *service) recall(waiting scope) {
	s.enqueue(recall{waiting, soon})
	time.AfterFunc(s.cfg.maxStale+time.Second, func() { s.enqueue(recall{waiting, math.MaxInt}) })
}

// enqueue does nothing if too many recalls wait already: these notifications just wait for
// their time.
func (s *service) enqueue(r recall) {
	select {
	case s.recalls <- r:
	default:
	}
}

// recallUntil calls makeDue until ctx ends.
func (s *service) recallUntil(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case r := <-s.recalls:
			if err := s.database.makeDue(ctx, r); err != nil && ctx.Err() == nil {
				s.logger.WarnContext(ctx, "make due what waits", "client", r.client, "error", err)
			}
		}
	}
}

// findWaiting selects what waits for its next attempt.
const findWaiting = `SELECT id FROM river_job
WHERE state IN ('available', 'retryable', 'scheduled') AND scheduled_at > CURRENT_TIMESTAMP
AND args ->> 'client' = $1 AND ($2 = '' OR args ->> 'entity' = $2) LIMIT $3`

// makeDue makes due what waits for its next attempt, unless a worker takes it meanwhile. It
// does so in batches, so that nobody waits for it for long.
func (d *database) makeDue(ctx context.Context, r recall) error {
	rows, err := d.QueryContext(ctx, findWaiting, r.client, r.entity, r.most)
	if err != nil {
		return err
	}
	defer rows.Close()
	var ids []int64
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return err
		}
		ids = append(ids, id)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	for batch := range slices.Chunk(ids, 1000) {
		if _, err := d.ExecContext(ctx, `UPDATE river_job SET state = 'available', scheduled_at = CURRENT_TIMESTAMP
WHERE state IN ('available', 'retryable', 'scheduled') AND id IN (`+list(batch)+`)`); err != nil {
			return err
		}
	}
	return nil
}
