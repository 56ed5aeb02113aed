package outbox

import (
	"context"
	"log/slog"
	"time"

	"example.com/go-webhookcfg/internal/redact"
	"example.com/go-webhookcfg/webhookcfg/deliver/outbox/internal/queue"
)

// warn logs an error. While the database is down, the same things fail many times a second, so
// it logs each once a minute.
func (o *Outbox) warn(ctx context.Context, what string, err error) {
	if err == nil || ctx.Err() != nil {
		return
	}
	if !o.isRepeated(what) {
		o.options.Logger.LogAttrs(ctx, slog.LevelWarn, "outbox: "+what, slog.Any("error", redact.PrintableError(err)))
	}
}

// isRepeated reports whether something was logged within the last minute. If not, it's logged now.
func (o *Outbox) isRepeated(what string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	if last, ok := o.warned[what]; ok && now.Sub(last) < time.Minute {
		return true
	}
	o.warned[what] = now
	return false
}

// tookOver logs that the process took over from others.
func (o *Outbox) tookOver(processes int) {
	o.options.Logger.Info("outbox: took over from processes that have ended", slog.Int("processes", processes))
}

// lost logs that the process has lost its lease.
func (o *Outbox) lost() { o.options.Logger.Warn("outbox: lost the lease, starting again") }

// callTimeout is for a call of the database.
const callTimeout = 15 * time.Second

// reportEvery is how long notifications may be due before it's logged, and how often it is.
const reportEvery = time.Minute

// reportAll logs who is behind, how much and why, until ctx ends. Of all processes, one does.
func (o *Outbox) reportAll(ctx context.Context, me int64) {
	for queue.Wait(ctx, reportEvery) {
		call, cancel := context.WithTimeout(ctx, callTimeout)
		if leads, err := o.tables.leads(call, me); err == nil && leads { // after an error, polls fail, too, and log it
			s, err := o.Stats(call)
			o.warn(ctx, "can't look for notifications that are overdue", err)
			s.report(ctx, o.options.Logger)
		}
		cancel()
	}
}

// report logs the clients whose notifications are overdue, if there are any.
func (s Stats) report(ctx context.Context, logger *slog.Logger) {
	var behind []string
	for _, c := range s.Clients {
		if c.Overdue >= reportEvery {
			behind = append(behind, c.String())
		}
	}
	if len(behind) > 0 {
		logger.LogAttrs(ctx, slog.LevelWarn, "outbox: notifications are overdue", slog.Int("waiting", s.Waiting), slog.Any("clients", behind))
	}
}
