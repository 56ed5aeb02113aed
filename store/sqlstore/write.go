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

// How often something is tried that others keep from happening: for longer than a
// context should last, since of many who meet at an isolation level of snapshots one
// gets through at a time. The pauses grow to about a quarter of a second.
const (
	maxTries   = 100
	firstPause = 4 * time.Millisecond
	doublings  = 6
)

// write makes a change, and returns how many rows its last statement changed. What
// comes of a change that is tried again is what comes of it once, since a try that
// is followed by another has left nothing behind.
//
// Even a change of one statement is a transaction, for the sake of one that is given
// up: a server goes on with what it was sent, however late that arrives. The first
// statement locks the row of the client, and its answer is there before the commit is
// sent. So a change whose commit was not sent is never made; and one whose commit is
// on its way keeps the lock until it is made or rolled back, so that it cannot come
// after a later change of that client that was acknowledged.
func (s *Store) write(ctx context.Context, steps []statement, v values) (rows int64, err error) {
	if err := s.writeLock.lock(ctx); err != nil {
		return 0, err
	}
	defer s.writeLock.unlock()
	err = s.retry(ctx, func() (found outcome, err error) {
		conn, err := s.db.Conn(ctx)
		if err != nil {
			return s.classifyUncommitted(err), err
		}
		defer conn.Close()
		rows, found, err = s.transaction(ctx, conn, steps, v)
		return found, err
	})
	return rows, err
}

// transaction begins and commits by statements: those end with ctx, where the
// methods of a [sql.Tx] wait for a server that has fallen silent.
func (s *Store) transaction(ctx context.Context, conn *sql.Conn, steps []statement, v values) (rows int64, found outcome, err error) {
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
	for _, step := range steps {
		result, err := conn.ExecContext(ctx, step.text, step.args(v)...)
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
		return rows, outcomeFailed, nil
	case errors.Is(err, driver.ErrBadConn):
		// A driver may call a statement without parameters unsent whose answer was lost.
		return 0, outcomeUnknown, err
	}
	return 0, s.classify(err), err
}

// writeLock lets one writer of this process after the other, where the database has one
// at a time: to wait here is fair, and ends with the context. Nil lets all.
type writeLock chan struct{}

func (l writeLock) lock(ctx context.Context) error {
	if l == nil {
		return nil
	}
	select {
	case l <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l writeLock) unlock() {
	if l != nil {
		<-l
	}
}

// retry tries again what was rolled back, for as long as ctx lasts and with
// pauses of chance, so that those who met do not meet again.
func (s *Store) retry(ctx context.Context, try func() (outcome, error)) error {
	for n := 1; ; n++ {
		found, err := try()
		switch {
		case err == nil:
			return nil
		case found == outcomeUnknown:
			return fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
		case found == outcomeFailed || n == maxTries:
			return err
		}
		s.logger.LogAttrs(ctx, slog.LevelDebug, "sqlstore: trying again", slog.Int("try", n))
		if ended := pause(ctx, n); ended != nil {
			return errors.Join(ended, err)
		}
	}
}

// pause waits before try n+1.
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

// cleanupTimeout is how long it may take to clean up, or to find out what became of a change,
// though the context has ended.
const cleanupTimeout = 500 * time.Millisecond

// resolveOutcome reports whether a change of which nobody knows turns out to have been made.
// Its first statement waits for the end of that transaction, and its second finds the
// mark which that has left, if it came to an end and no other came since. The second
// also replaces it: a commit that has something to write is answered only when what was
// written before it is as safe, such as on a standby that the other did not wait for.
func (s *Store) resolveOutcome(ctx context.Context, v values) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	v["next"] = rand.Int64()
	rows, err := s.write(ctx, s.queries.resolveOutcome, v)
	return err == nil && rows == 1
}

// release ends what a connection holds, also when ctx has ended. A connection that
// cannot be freed of it must not go back to the pool.
func release(ctx context.Context, conn *sql.Conn, statement string, args ...any) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	if _, err := conn.ExecContext(ctx, statement, args...); err != nil {
		_ = conn.Raw(func(any) error { return driver.ErrBadConn })
	}
}
