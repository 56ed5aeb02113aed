package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"
)

// Limits for retries after conflicts. With many concurrent transactions at snapshot
// isolation, only one succeeds at a time. So there are more attempts than fit into a usual
// context. The pauses grow to about a quarter of a second.
const (
	maxTries   = 100
	firstPause = 4 * time.Millisecond
	doublings  = 6
)

// retryWrite is retry for an attempt that writes. With oneWriter it waits for its turn first.
func (s *Store) retryWrite(ctx context.Context, attempt func() (outcome, error)) error {
	if s.dialect.oneWriter {
		unlock, err := s.writing.Lock(ctx, "")
		if err != nil {
			return err
		}
		defer unlock()
	}
	return s.retry(ctx, attempt)
}

// retry calls attempt until it ends without a conflict, or ctx ends. The outcome only counts
// together with an error. The pauses are random, so that transactions don't keep colliding.
func (s *Store) retry(ctx context.Context, attempt func() (outcome, error)) error {
	for n := 1; ; n++ {
		found, err := attempt()
		switch {
		case err == nil:
			return nil
		case found == outcomeUnknown:
			return fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
		case found == outcomeFailed || n == maxTries:
			return err
		}
		s.logger.LogAttrs(ctx, slog.LevelDebug, "sqlstore: retrying transaction", slog.Int("attempt", n))
		if ended := pause(ctx, n); ended != nil {
			return errors.Join(ended, err)
		}
	}
}

// pause waits before attempt n+1.
func pause(ctx context.Context, n int) error {
	longest := firstPause << min(n-1, doublings)
	select {
	case <-time.After(rand.N(longest)):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
