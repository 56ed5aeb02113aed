package main

import (
	"context"
	"errors"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
)

// scope is a client's notifications, of one entity or, if that is "", of all.
type scope struct{ client, entity string }

// onRecovered makes due what waits for a client whose receiver is available again; it is the
// [deliver.Options.OnRecovered]. An entry of the queue doesn't know its receiver. What waits
// for another one of the client that is still paused is deferred again, which costs little.
func (s *service) onRecovered(_ context.Context, client, _ string) {
	s.recall(scope{client: client})
}

// onEvent makes due what waits for a webhook that was set; it is the
// [webhookcfg.Options.OnEvent]. What waits had its delay from the webhook before.
func (s *service) onEvent(_ context.Context, e webhookcfg.Event) {
	if e.Operation == "set" && e.Code == "" {
		s.recall(scope{e.Client, e.Scope.Entity()})
	}
}

// recall has makeDue called soon, and once more: until then, a worker may have had the
// webhook or the pause before, and have deferred what was due.
func (s *service) recall(waiting scope) {
	s.tryRecall(waiting)
	time.AfterFunc(s.cfg.maxStale+time.Second, func() { s.tryRecall(waiting) })
}

// maxRecalls is the number of scopes that may wait until they are made due.
const maxRecalls = 1000

// tryRecall does nothing if too many wait already: these notifications just wait for their
// time.
func (s *service) tryRecall(waiting scope) {
	select {
	case s.recalls <- waiting:
	default:
	}
}

// recallUntil calls makeDue until ctx ends.
func (s *service) recallUntil(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case waiting := <-s.recalls:
			if err := s.database.makeDue(ctx, waiting); err != nil && ctx.Err() == nil {
				s.logger.WarnContext(ctx, "make due what waits", "client", waiting.client, "error", err)
			}
		}
	}
}

// makeDueJobs has an outer condition on the state too, for jobs that a worker took meanwhile.
const makeDueJobs = `UPDATE river_job SET state = 'available', scheduled_at = CURRENT_TIMESTAMP
WHERE state IN ('available', 'retryable', 'scheduled') AND id IN (
	SELECT id FROM river_job
	WHERE state IN ('available', 'retryable', 'scheduled') AND scheduled_at > CURRENT_TIMESTAMP
	AND args ->> 'client' = $1 AND ($2 = '' OR args ->> 'entity' = $2) AND id > $3
	ORDER BY id LIMIT $4)
RETURNING id`

// makeDue makes due what waits for its next attempt, in batches.
func (d *database) makeDue(ctx context.Context, waiting scope) error {
	const batch = 1000
	var last int64 // each job is made due once, even if it is deferred again meanwhile
	for n := batch; n == batch; {
		rows, err := d.QueryContext(ctx, makeDueJobs, waiting.client, waiting.entity, last, batch)
		if err != nil {
			return err
		}
		for n = 0; rows.Next(); n++ {
			var id int64
			if err := rows.Scan(&id); err != nil {
				return errors.Join(err, rows.Close())
			}
			last = max(last, id)
		}
		if err := rows.Err(); err != nil {
			return err
		}
	}
	return nil
}
