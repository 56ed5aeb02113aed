package main

import (
	"context"
	"time"

	"github.com/riverqueue/river"

	"example.com/go-webhookcfg/webhookcfg/deliver"
)

// worker is everything between River and package deliver.
type worker struct {
	river.WorkerDefaults[notification]
	sender   *deliver.Sender
	schedule deliver.Schedule
	hold     time.Duration // see overflowHold
}

// Work makes one attempt, or none. Its error tells River what to do with the job.
func (w *worker) Work(ctx context.Context, job *river.Job[notification]) error {
	r := w.sender.Send(ctx, job.Args.Client, job.Args.Entity, job.Args.Message)
	decision := w.schedule.Next(job.Attempt, r)
	switch decision.Action {
	case deliver.Done:
		return nil
	case deliver.Retry:
		if r.Outcome == deliver.Deferred {
			return river.JobSnooze(w.wait(ctx, job.Queue, r)) // doesn't count as an attempt
		}
		job.Args.delay = decision.Delay
		return r.Err
	default:
		return river.JobCancel(r.Err) // given up: River keeps the job, so you can replay it
	}
}

// wait returns how long to defer a notification. In an overflow, the worker itself waits for
// the first part of that time if the receiver is busy.
func (w *worker) wait(ctx context.Context, queue string, r deliver.Result) time.Duration {
	if r.Reason != deliver.ReasonBusy || !isOverflow(queue) {
		return r.Wait
	}
	held := min(w.hold, r.Wait)
	select {
	case <-time.After(held):
		return r.Wait - held
	case <-ctx.Done():
		return r.Wait
	}
}

// NextRetry returns when the next attempt is due. River passes it the job that Work had, but
// not the error. If the process of a job was killed, the job is due immediately.
func (w *worker) NextRetry(job *river.Job[notification]) time.Time {
	return time.Now().Add(job.Args.delay)
}
