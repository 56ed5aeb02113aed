package main

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/riverqueue/river"

	"example.com/go-webhookcfg/webhookcfg/deliver"
)

// queue is a [river.Client] that also changes modules.
type queue interface {
	Start(ctx context.Context) error
	Stop(ctx context.Context) error
	JobList(ctx context.Context, params *river.JobListParams) (*river.JobListResult, error)
	// update changes a module and enqueues its notification, in one transaction. If it
	// returns nil, both are durable. If the process is killed before that, you have neither,
	// or both if only the response was lost. Once a client has a backlog of notifications
	// waiting, the next ones go to an overflow.
	update(ctx context.Context, m module, backlog int) (version int64, err error)
}

// notification is an entry of the queue. It has no URL and no key, so queued notifications
// always use the current ones.
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
	river.AddWorker(workers, &worker{sender: s.sender, schedule: s.cfg.schedule, hold: overflowHold})
	// Besides the attempt, Send reads the webhook, the keys and the rest of a response. These
	// 5 seconds are for that.
	jobTimeout := s.cfg.delivery.Timeout + 5*time.Second
	return &river.Config{
		Logger:     slog.New(seldom{logger.Handler(), new(sync.Map)}),
		Workers:    workers,
		Queues:     queues(s.cfg.workers),
		JobTimeout: jobTimeout,
		// If a process is killed, its jobs are retried after this time. River's default is an
		// hour. Keep it longer than any attempt, or attempts are made twice. Send can take
		// two more seconds to save a health record.
		RescueStuckJobsAfter: jobTimeout + 5*time.Second,
		// The schedule should give up first, since River's own limit wouldn't keep a reason.
		MaxAttempts: 1000,
		// With these times and the default of -workers, a receiver with a backlog gets as
		// many requests as its slots allow: see the limits in package deliver.
		FetchCooldown:     20 * time.Millisecond,
		FetchPollInterval: 200 * time.Millisecond,
		// You can replay given-up notifications for this long.
		CancelledJobRetentionPeriod: s.cfg.keep,
		DiscardedJobRetentionPeriod: s.cfg.keep,
		CompletedJobRetentionPeriod: time.Hour,
	}
}

// seldom passes each message on at most once a minute. While the database is down, River would
// log the same ones a hundred times a second, and hide the line that has the cause.
type seldom struct {
	slog.Handler
	last *sync.Map // by message, its time
}

// Handle implements [slog.Handler].
func (h seldom) Handle(ctx context.Context, r slog.Record) error {
	if last, ok := h.last.Load(r.Message); ok && r.Time.Sub(last.(time.Time)) < time.Minute {
		return nil
	}
	h.last.Store(r.Message, r.Time)
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements [slog.Handler].
func (h seldom) WithAttrs(attrs []slog.Attr) slog.Handler {
	return seldom{h.Handler.WithAttrs(attrs), h.last}
}

// WithGroup implements [slog.Handler].
func (h seldom) WithGroup(name string) slog.Handler { return seldom{h.Handler.WithGroup(name), h.last} }
