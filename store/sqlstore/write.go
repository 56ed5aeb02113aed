package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"
)

// Retry limits for transactions aborted by conflicts. All attempts together take longer
// than a context should last, since of many concurrent transactions at snapshot
// isolation only one succeeds at a time. The pauses grow to about a quarter of a second.
const (
	maxTries   = 100
	firstPause = 4 * time.Millisecond
	doublings  = 6
)

// write executes the statements of a change in one transaction, and returns the number
// of rows that the last one changed. Retries do not change the result, since only a
// rolled-back attempt is followed by another.
//
// Even a single statement is a transaction, because the caller may abandon it: a server
// executes what it receives, however late that arrives. The first statement locks the
// row of the client, and has returned before the commit is sent. So a change whose
// commit was not sent is never applied; and one whose commit is in flight holds the lock
// until it is committed or rolled back, and cannot follow a later acknowledged change of
// that client.
func (s *Store) write(ctx context.Context, statements []statement, v values) (rows int64, err error) {
	err = s.retryWrite(ctx, func() (found outcome, err error) {
		conn, err := s.db.Conn(ctx)
		if err != nil {
			return s.classifyUncommitted(err), err
		}
		defer conn.Close()
		rows, found, err = s.transaction(ctx, conn, statements, v)
		return found, err
	})
	return rows, err
}

// execute executes a statement that is a transaction of its own, and returns the number of
// rows that it changed. The server may execute a statement that was abandoned, however late
// it arrives, and one whose response was lost is not distinguished from one that failed. So
// the statement must not matter if it is executed late or twice.
func (s *Store) execute(ctx context.Context, stmt statement, v values) (rows int64, err error) {
	err = s.retryWrite(ctx, func() (outcome, error) {
		result, err := s.db.ExecContext(ctx, stmt.text, stmt.args(v)...)
		if err == nil {
			rows, err = result.RowsAffected()
		}
		return s.attempted(err)
	})
	return rows, err
}

// transaction executes BEGIN and COMMIT as statements: those return when ctx ends,
// whereas the methods of a [sql.Tx] wait for an unresponsive server.
func (s *Store) transaction(ctx context.Context, conn *sql.Conn, statements []statement, v values) (rows int64, found outcome, err error) {
	if _, err := conn.ExecContext(ctx, s.dialect.begin()); err != nil {
		if s.classify(err) == outcomeUnknown {
			release(ctx, conn, "rollback")
		}
		return 0, s.classifyUncommitted(err), err
	}
	defer func() {
		if err != nil {
			release(ctx, conn, "rollback")
		}
	}()
	for _, stmt := range statements {
		result, err := conn.ExecContext(ctx, stmt.text, stmt.args(v)...)
		if err == nil {
			rows, err = result.RowsAffected()
		}
		if err != nil {
			return 0, s.classifyUncommitted(err), err
		}
	}
	if err := ctx.Err(); err != nil {
		return 0, outcomeFailed, err
	}
	_, err = conn.ExecContext(ctx, "commit")
	switch {
	case err == nil:
		return rows, 0, nil
	case errors.Is(err, driver.ErrBadConn):
		// For a statement without parameters, a driver may return ErrBadConn although it
		// was sent and only its response was lost.
		return 0, outcomeUnknown, err
	}
	return 0, s.classify(err), err
}

// retryWrite is retry for an attempt that changes something: with SQLite it waits for its
// turn first.
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

// retry calls attempt until it ends other than by a conflict, for as long as ctx lasts.
// The outcome of an attempt counts only with an error. The pauses are random, so that
// conflicting transactions do not meet again.
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
	timer := time.NewTimer(rand.N(longest))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// cleanupTimeout bounds cleaning up, and resolving the outcome of a change, after the
// context has ended.
const cleanupTimeout = 500 * time.Millisecond

// resolveOutcome reports whether a change whose outcome is unknown was committed. Its
// first statement waits for the end of that transaction; the second finds the mark of the
// change, if that was committed and no other has followed. The second also replaces the
// mark: a commit that writes is acknowledged only when everything written before it is as
// durable, for instance on a standby for which the original commit did not wait.
func (s *Store) resolveOutcome(ctx context.Context, v values) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	v["next"] = rand.Int64()
	rows, err := s.write(ctx, s.queries.resolveOutcome, v)
	return err == nil && rows == 1
}

// release ends the transaction or lock that a connection holds, even if ctx has ended.
// If that fails, the connection does not return to the pool.
func release(ctx context.Context, conn *sql.Conn, statement string, args ...any) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	if _, err := conn.ExecContext(ctx, statement, args...); err != nil {
		_ = conn.Raw(func(any) error { return driver.ErrBadConn })
	}
}
