package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"time"
)

// write executes the statements of a change in one transaction, and returns how many rows the
// last one changed. It only retries after a rollback, so a retry doesn't change the result.
//
// Even a single statement gets a transaction, because the caller may abandon it, and a server
// executes anything it receives, even if it's late. The first statement locks the client's
// row and has returned before the commit is sent. So a change is never applied if its commit
// wasn't sent. And while a commit is in flight it holds the lock, so it can't follow a later
// acknowledged change of the client.
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

// execute executes a statement without a transaction around it, and returns how many rows it
// changed. If the statement was abandoned, the server may execute it late. If its response
// was lost, that looks like a failure. So use execute only for statements that may run late
// or twice.
func (s *Store) execute(ctx context.Context, stmt statement, v values) (rows int64, err error) {
	err = s.retryWrite(ctx, func() (outcome, error) {
		result, err := s.db.ExecContext(ctx, stmt.Text, stmt.Args(v)...)
		if err == nil {
			rows, err = result.RowsAffected()
		}
		return s.attempted(err)
	})
	return rows, err
}

// transaction sends BEGIN and COMMIT as statements, which return when ctx ends. The methods
// of a [sql.Tx] would wait for an unresponsive server.
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
		result, err := conn.ExecContext(ctx, stmt.Text, stmt.Args(v)...)
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
		// A driver may return ErrBadConn for a statement without parameters, although it was
		// sent and only its response was lost.
		return 0, outcomeUnknown, err
	}
	return 0, s.classify(err), err
}

// cleanupTimeout is how long cleaning up, and finding out the outcome of a change, may go on
// after the context has ended.
const cleanupTimeout = 500 * time.Millisecond

// release ends a connection's transaction or lock, even if ctx has ended. If that fails, the
// connection doesn't go back to the pool.
func release(ctx context.Context, conn *sql.Conn, statement string, args ...any) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	if _, err := conn.ExecContext(ctx, statement, args...); err != nil {
		_ = conn.Raw(func(any) error { return driver.ErrBadConn })
	}
}
