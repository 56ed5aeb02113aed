package main

import (
	"context"
	"time"

	"github.com/riverqueue/river"

	"example.com/go-webhookcfg/webhookcfg/deliver"
)

// worker is all that is between River and package deliver.
type worker struct {
	river.WorkerDefaults[notification]
	sender   *deliver.Sender
	schedule deliver.Schedule
}

// Work makes one attempt, or none. Its error decides what River does with the job.
func (w *worker) Work(ctx context.Context, job *river.Job[notification]) error {
	r := w.sender.Send(ctx, job.Args.Client, job.Args.Entity, job.Args.Message)
	decision := w.schedule.Next(job.Attempt, r)
	switch decision.Action {
	case deliver.Done:
		return nil
	case deliver.Retry:
		if r.Outcome == deliver.Deferred {
			return river.JobSnooze(decision.Delay) // does not count as an attempt
		}
		job.Args.delay = decision.Delay
		return r.Err
	default:
		return river.JobCancel(r.Err) // given up: River keeps the job, so that it can be replayed
	}
}

// NextRetry returns when the next attempt is due. River passes no error to it, but the job
// that Work had. A job whose process was killed is due immediately.
func (w *worker) NextRetry(job *river.Job[notification]) time.Time {
	return time.Now().Add(job.Args.delay)
}
