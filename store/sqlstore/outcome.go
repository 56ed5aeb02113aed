package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"math/rand/v2"
)

// outcome tells whether a failed write changed anything.
type outcome int

const (
	// outcomeUnknown: the write may have been committed.
	outcomeUnknown outcome = iota
	// outcomeFailed: nothing was changed, and a retry would fail too.
	outcomeFailed
	// outcomeConflict: nothing was changed because of a concurrent transaction.
	outcomeConflict
)

// classify returns the outcome of a statement that may have worked despite its error, such as
// a commit.
//
// ErrBadConn proves that the server didn't get the statement: database/sql relies on that
// too, and sends the statement again on another connection.
func (s *Store) classify(err error) outcome {
	switch {
	case errors.Is(err, driver.ErrBadConn):
		return outcomeConflict
	case errors.Is(err, sql.ErrTxDone), errors.Is(err, sql.ErrConnDone):
		return outcomeFailed
	default:
		return s.dialect.outcomes.of(s.dialect.code(err))
	}
}

// classifyUncommitted returns the outcome of a transaction whose commit wasn't sent. The
// server rolls it back after any error.
func (s *Store) classifyUncommitted(err error) outcome {
	if s.classify(err) == outcomeConflict {
		return outcomeConflict
	}
	return outcomeFailed
}

// attempted returns the outcome and the error of an attempt that commits nothing.
func (s *Store) attempted(err error) (outcome, error) {
	if err == nil {
		return 0, nil
	}
	return s.classifyUncommitted(err), err
}

// provedOutcomes has the error codes that prove whether a commit took effect. They're few. A
// server can return any other code after the commit took effect. On PostgreSQL, that's for
// instance 57P01, when it shuts down. On MySQL and MariaDB it's 1047 (a node left its Galera
// cluster), 1180 (the commit itself failed), 1317 and 1969 (it was interrupted), or 1927 and
// 4031 (the server ended the connection).
type provedOutcomes map[string]outcome

// of returns the outcome that a code proves. The code "" is for errors without one.
func (p provedOutcomes) of(code string) outcome {
	found, ok := p[code]
	if !ok && len(code) == 5 {
		found = p[code[:2]]
	}
	return found
}

// resolveOutcome reports whether a change was committed. Its first statement waits for the
// end of the change's transaction. The second finds the change's mark, which is there if the
// change was committed and no other followed.
//
// The second also replaces the mark. A commit that writes is only acknowledged when
// everything before it is as durable, for instance on a standby that the first commit didn't
// wait for.
func (s *Store) resolveOutcome(ctx context.Context, v values) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	v["next"] = rand.Int64()
	rows, err := s.write(ctx, s.queries.resolveOutcome, v)
	return err == nil && rows == 1
}
