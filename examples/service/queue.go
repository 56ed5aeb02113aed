package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"example.com/go-webhookcfg/webhookcfg/deliver"
)

// queue is a [river.Client] that also changes modules.
type queue interface {
	Start(ctx context.Context) error
	Stop(ctx context.Context) error
	JobList(ctx context.Context, params *river.JobListParams) (*river.JobListResult, error)
	JobRetry(ctx context.Context, id int64) (*rivertype.JobRow, error)
	// update changes a module and enqueues its notification in one transaction: if it
	// returns nil, both are durable, and if the process is killed before, there is neither
	// or, if only the response was lost, both. Beyond so many notifications that wait, those
	// of a client go to an overflow.
	update(ctx context.Context, m module, backlog int) (version int64, err error)
}

// notification is an entry of the queue. It has no URL and no key, so that what waits
// follows every set, unset and rotation.
type notification struct {
	Client  string          `json:"client"`
	Entity  string          `json:"entity"`
	Message deliver.Message `json:"message"`

	delay time.Duration // until the next attempt; see worker
}

// Kind implements [river.JobArgs].
func (notification) Kind() string { return "notification" }

// river returns the settings of the queue.
func (s *service) river(logger *slog.Logger) *river.Config {
	workers := river.NewWorkers()
	river.AddWorker(workers, &worker{sender: s.sender, schedule: s.cfg.schedule})
	// What Send may take on top of the attempt: to read the webhook, the keys and the rest
	// of a response.
	jobTimeout := s.cfg.delivery.Timeout + 5*time.Second
	return &river.Config{
		Logger:     logger,
		Workers:    workers,
		Queues:     queues(s.cfg.workers),
		JobTimeout: jobTimeout,
		// The jobs of a process that was killed are retried after this time. By default it
		// is an hour; it must be longer than any attempt, which would be made twice. Send
		// takes up to two seconds more to save a record of health.
		RescueStuckJobsAfter: jobTimeout + 5*time.Second,
		// The schedule gives up first: River's own limit would keep no reason.
		MaxAttempts: 1000,
		// Workers of a queue that became free get their next jobs after the first time, and
		// a job whose delay is over gets its worker within the second.
		FetchCooldown:     20 * time.Millisecond,
		FetchPollInterval: 200 * time.Millisecond,
		// How long what was given up can be replayed.
		CancelledJobRetentionPeriod: 14 * 24 * time.Hour,
		DiscardedJobRetentionPeriod: 14 * 24 * time.Hour,
		CompletedJobRetentionPeriod: time.Hour,
	}
}

// givenUpPage is the number of jobs that are read at a time.
const givenUpPage = 100

// listGivenUp prints the notifications that were given up, of one client or of all if that
// is "". With again it also sends them once more: where the schedule is used up, that is one
// attempt, and a job that fails it is given up again. The service may run meanwhile.
func (s *service) listGivenUp(ctx context.Context, client string, again bool, stdout io.Writer) error {
	all := river.NewJobListParams().First(givenUpPage).
		States(rivertype.JobStateCancelled, rivertype.JobStateDiscarded).
		OrderBy(river.JobListOrderByID, river.SortOrderAsc)
	for page := all; ; {
		found, err := s.queue.JobList(ctx, page)
		if err != nil {
			return fmt.Errorf("jobs given up: %w", err)
		}
		for _, job := range found.Jobs {
			var n notification
			if err := json.Unmarshal(job.EncodedArgs, &n); err != nil {
				return fmt.Errorf("job %d: %w", job.ID, err)
			}
			if client != "" && client != n.Client {
				continue
			}
			if again {
				if _, err := s.queue.JobRetry(ctx, job.ID); err != nil {
					return fmt.Errorf("replay job %d: %w", job.ID, err)
				}
			}
			fmt.Fprintln(stdout, job.ID, n.Client, n.Entity, n.Message.ID, lastError(job))
		}
		if found.LastCursor == nil {
			return nil
		}
		page = all.After(found.LastCursor) // JobList changes its parameters: page cannot be used again
	}
}

// lastError returns why the last attempt failed.
func lastError(job *rivertype.JobRow) string {
	if last := len(job.Errors) - 1; last >= 0 {
		return job.Errors[last].Error
	}
	return "unknown"
}
