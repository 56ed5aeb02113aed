package outbox

import (
	"context"
	"log/slog"
	"time"
)

// warn logs an error. While the database is down, the same things fail many times a second, so
// it logs each once a minute.
func (o *Outbox) warn(ctx context.Context, what string, err error) {
	if err == nil || ctx.Err() != nil {
		return
	}
	if !o.isRepeated(what) {
		o.options.Logger.LogAttrs(ctx, slog.LevelWarn, "outbox: "+what, slog.Any("error", err))
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
