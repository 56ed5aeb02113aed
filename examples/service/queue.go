package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/riverqueue/river"

	"example.com/go-webhookcfg/webhookcfg/deliver"
)

// queue is a [river.Client] that also changes modules.
type queue interface {
	Start(ctx context.Context) error
	Stop(ctx context.Context) error
	JobList(ctx context.Context, params *river.JobListParams) (*river.JobListResult, error)
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
		// With these times, and the default of -workers, a receiver with a backlog gets what
		// its slots allow: see the limits in package deliver.
		FetchCooldown:     20 * time.Millisecond,
		FetchPollInterval: 200 * time.Millisecond,
		// How long what was given up can be replayed.
		CancelledJobRetentionPeriod: s.cfg.keep,
		DiscardedJobRetentionPeriod: s.cfg.keep,
		CompletedJobRetentionPeriod: time.Hour,
	}
}
