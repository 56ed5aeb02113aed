package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
)

// replay sends the given jobs once more, or without any all that were given up. Where the
// schedule is used up, that is one attempt; a job that fails it is given up again. The
// service may run meanwhile, and delivers them.
func (s *service) replay(ctx context.Context, operands []string, stdout io.Writer) error {
	jobs := make([]int64, len(operands))
	for i, operand := range operands {
		id, err := strconv.ParseInt(operand, 10, 64)
		if err != nil {
			return fmt.Errorf("replay: %q is not the number of a job", operand)
		}
		jobs[i] = id
	}
	if len(jobs) == 0 {
		return s.eachGivenUp(ctx, func(job *rivertype.JobRow) error { return s.replayJob(ctx, job.ID, stdout) })
	}
	for _, id := range jobs {
		if err := s.replayJob(ctx, id, stdout); err != nil {
			return err
		}
	}
	return nil
}

// printGivenUp prints the jobs that were given up: number, client, entity, message, and why
// the last attempt failed.
func (s *service) printGivenUp(ctx context.Context, stdout io.Writer) error {
	return s.eachGivenUp(ctx, func(job *rivertype.JobRow) error {
		var n notification
		if err := json.Unmarshal(job.EncodedArgs, &n); err != nil {
			return fmt.Errorf("job %d: %w", job.ID, err)
		}
		reason := "unknown"
		if last := len(job.Errors) - 1; last >= 0 {
			reason = job.Errors[last].Error
		}
		fmt.Fprintf(stdout, "%d %s %s %s %s\n", job.ID, n.Client, n.Entity, n.Message.ID, reason)
		return nil
	})
}

// givenUpPage is the number of jobs that are read at a time.
const givenUpPage = 100

// eachGivenUp calls do with every job that was given up.
func (s *service) eachGivenUp(ctx context.Context, do func(*rivertype.JobRow) error) error {
	givenUp := river.NewJobListParams().First(givenUpPage).
		States(rivertype.JobStateCancelled, rivertype.JobStateDiscarded).
		OrderBy(river.JobListOrderByID, river.SortOrderAsc)
	for page := givenUp; ; {
		found, err := s.queue.JobList(ctx, page)
		if err != nil {
			return fmt.Errorf("jobs given up: %w", err)
		}
		for _, job := range found.Jobs {
			if err := do(job); err != nil {
				return err
			}
		}
		if found.LastCursor == nil {
			return nil
		}
		page = givenUp.After(found.LastCursor) // JobList changes its parameters: page cannot be used again
	}
}

func (s *service) replayJob(ctx context.Context, id int64, stdout io.Writer) error {
	job, err := s.queue.JobRetry(ctx, id)
	if err != nil {
		return fmt.Errorf("replay job %d: %w", id, err)
	}
	fmt.Fprintf(stdout, "%d %v\n", job.ID, job.State)
	return nil
}
