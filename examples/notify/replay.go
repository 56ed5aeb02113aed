package main

import (
	"context"
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
		return s.replayAll(ctx, stdout)
	}
	for _, id := range jobs {
		if err := s.replayJob(ctx, id, stdout); err != nil {
			return err
		}
	}
	return nil
}

// replayPage is the number of jobs that replay reads at a time.
const replayPage = 100

func (s *service) replayAll(ctx context.Context, stdout io.Writer) error {
	givenUp := river.NewJobListParams().First(replayPage).
		States(rivertype.JobStateCancelled, rivertype.JobStateDiscarded).
		OrderBy(river.JobListOrderByID, river.SortOrderAsc)
	for page := givenUp; ; {
		found, err := s.queue.JobList(ctx, page)
		if err != nil {
			return fmt.Errorf("replay: %w", err)
		}
		for _, job := range found.Jobs {
			if err := s.replayJob(ctx, job.ID, stdout); err != nil {
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
