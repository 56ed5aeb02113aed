package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
)

// selection says which given-up notifications a command should work on. The zero value
// selects all.
type selection struct {
	client, entity string
	after, before  time.Time // when the notification was enqueued
}

// jobs returns the parameters to list the jobs of the client and the entity.
func (s selection) jobs() *river.JobListParams {
	p := river.NewJobListParams().First(givenUpPage).
		States(rivertype.JobStateCancelled, rivertype.JobStateDiscarded).
		OrderBy(river.JobListOrderByID, river.SortOrderAsc)
	if s.client != "" {
		p = p.Where("args ->> 'client' = @client", river.NamedArgs{"client": s.client})
	}
	if s.entity != "" {
		p = p.Where("args ->> 'entity' = @entity", river.NamedArgs{"entity": s.entity})
	}
	return p
}

// contains reports whether a listed job was enqueued between the times.
func (s selection) contains(job *rivertype.JobRow) bool {
	return !job.CreatedAt.Before(s.after) && (s.before.IsZero() || job.CreatedAt.Before(s.before))
}

// givenUpPage is how many jobs are read, and replayed, at a time.
const givenUpPage = 100

// listGivenUp prints the notifications that were given up. If again is set, it also sends
// them once more. A job whose schedule is used up gets one attempt, and is given up again if
// that fails. You can do this while the service runs.
func (s *service) listGivenUp(ctx context.Context, selected selection, again bool, stdout io.Writer) error {
	all := selected.jobs()
	for page := all; ; {
		found, err := s.queue.JobList(ctx, page)
		if err != nil {
			return fmt.Errorf("jobs given up: %w", err)
		}
		var ids []int64
		for _, job := range found.Jobs {
			if !selected.contains(job) {
				continue
			}
			var n notification
			if err := json.Unmarshal(job.EncodedArgs, &n); err != nil {
				return fmt.Errorf("job %d: %w", job.ID, err)
			}
			ids = append(ids, job.ID)
			fmt.Fprintln(stdout, job.ID, n.Client, n.Entity, n.Message.ID, lastError(job))
		}
		if again && len(ids) > 0 {
			if err := s.database.replay(ctx, ids); err != nil {
				return fmt.Errorf("replay: %w", err)
			}
		}
		if found.LastCursor == nil {
			return nil
		}
		page = all.After(found.LastCursor) // JobList changes its parameters, so page can't be used again
	}
}

// replay makes given-up jobs due. It puts them into an overflow: they've waited already, and
// the client's new notifications shouldn't wait for them.
func (d *database) replay(ctx context.Context, ids []int64) error {
	_, err := d.ExecContext(ctx, `UPDATE river_job SET state = 'available', queue = replace(queue, 'shard', 'overflow'),
	scheduled_at = CURRENT_TIMESTAMP, finalized_at = NULL, max_attempts = max_attempts + 1
WHERE state IN ('cancelled', 'discarded') AND id IN (`+list(ids)+`)`)
	return err
}

// list returns numbers as the text of a list in SQL, since the two databases have no common
// way to pass a list as a parameter.
func list(ids []int64) string {
	var text []string
	for _, id := range ids {
		text = append(text, strconv.FormatInt(id, 10))
	}
	return strings.Join(text, ", ")
}

// lastError returns why the last attempt failed.
func lastError(job *rivertype.JobRow) string {
	if last := len(job.Errors) - 1; last >= 0 {
		return job.Errors[last].Error
	}
	return "unknown"
}

// forget keeps the latest given-up notifications of each client, up to a number, and deletes
// the older ones. River deletes those that are too old.
func (d *database) forget(ctx context.Context, keep int) error {
	for {
		result, err := d.ExecContext(ctx, `DELETE FROM river_job WHERE state IN ('cancelled', 'discarded') AND id IN (
	SELECT id FROM (
		SELECT id, row_number() OVER (PARTITION BY args ->> 'client' ORDER BY id DESC) AS nth
		FROM river_job WHERE state IN ('cancelled', 'discarded')
	) AS ranked WHERE nth > $1 LIMIT $2)`, keep, forgetBatch)
		if err != nil {
			return err
		}
		if n, err := result.RowsAffected(); err != nil || n < forgetBatch {
			return err
		}
	}
}

// forgetBatch is how many jobs one statement deletes.
const forgetBatch = 10_000

// forgetEvery applies -keep-most at every interval until ctx ends.
func (s *service) forgetEvery(ctx context.Context, interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		if err := s.database.forget(ctx, s.cfg.keepMost); err != nil && ctx.Err() == nil {
			s.logger.WarnContext(ctx, "can't delete old notifications that were given up", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}
