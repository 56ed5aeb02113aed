package main

import (
	"context"
	"math"
	"slices"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
)

// scope is a client's notifications: of one entity, or of all if that's "".
type scope struct{ client, entity string }

// recall asks to make the waiting notifications of a scope due, up to a number.
type recall struct {
	scope
	most int
}

const (
	// soon is how many notifications become due at once. A receiver takes about that many
	// before the others become due.
	soon = 100
	// maxRecalls is how many recalls can wait.
	maxRecalls = 1000
)

// onRecovered is the [deliver.Options.OnRecovered]. When a client's receiver is available
// again, it makes the client's waiting notifications due. Queue entries don't know their
// receiver, so those for another paused receiver are deferred again, which costs little.
func (s *service) onRecovered(_ context.Context, client, _ string) {
	s.recall(scope{client: client})
}

// onEvent gets all events of [webhookcfg.Options.OnEvent]. When a client sets a webhook, it
// makes the waiting notifications due, since their delay is from the previous webhook.
func (s *service) onEvent(_ context.Context, e webhookcfg.Event) {
	if e.Operation == "set" && e.Code == "" {
		s.recall(scope{e.Client, e.Scope.Entity()})
	}
}

// recall makes a few notifications due at once. The others follow when no worker still defers
// them because of the previous webhook or the pause. A notification that becomes due twice
// loses the turn that the sender gave it.
func (s *service) recall(waiting scope) {
	s.enqueue(recall{waiting, soon})
	time.AfterFunc(s.cfg.maxStale+time.Second, func() { s.enqueue(recall{waiting, math.MaxInt}) })
}

// enqueue does nothing if too many recalls wait already. The notifications then just wait for
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
				s.logger.WarnContext(ctx, "can't make waiting notifications due", "client", r.client, "error", err)
			}
		}
	}
}

// findWaiting finds notifications that wait for their next attempt.
const findWaiting = `SELECT id FROM river_job
WHERE state IN ('available', 'retryable', 'scheduled') AND scheduled_at > CURRENT_TIMESTAMP
AND args ->> 'client' = $1 AND ($2 = '' OR args ->> 'entity' = $2) LIMIT $3`

// makeDue makes notifications due that wait for their next attempt, unless a worker takes
// them meanwhile. It works in batches, so nobody waits for it for long.
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
