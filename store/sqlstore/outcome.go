package sqlstore

import (
	"database/sql"
	"database/sql/driver"
	"errors"
)

// outcome is the effect of a write that returned an error.
type outcome int

const (
	// outcomeUnknown: the write may have been committed.
	outcomeUnknown outcome = iota
	// outcomeFailed: nothing was changed, and a retry would fail again.
	outcomeFailed
	// outcomeConflict: nothing was changed because of a concurrent transaction.
	outcomeConflict
)

// classify returns the outcome of a statement that may have taken effect despite its
// error, such as a commit.
//
// A driver returns ErrBadConn only if the server cannot have received the statement,
// since package database/sql then sends it again on another connection.
func (s *Store) classify(err error) outcome {
	switch {
	case errors.Is(err, driver.ErrBadConn), s.retryable(err):
		return outcomeConflict
	case errors.Is(err, sql.ErrTxDone), errors.Is(err, sql.ErrConnDone):
		return outcomeFailed
	default:
		return s.dialect.outcomes.of(s.dialect.code(err))
	}
}

// classifyUncommitted returns the outcome of a transaction whose commit was not sent.
// However a statement failed, the server rolls the transaction back.
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

// provedOutcomes maps the error codes that prove the outcome of a commit to that outcome.
// They are few: a server may return any other code after the commit took effect, such as
// 57P01 of PostgreSQL when it shuts down, and of MySQL and MariaDB 1047 (a node left its
// Galera cluster), 1180 (the commit itself failed), 1317 and 1969 (it was interrupted),
// 1927 and 4031 (the server ended the connection).
type provedOutcomes map[string]outcome

// of returns the outcome that a code proves. "" is the code of every other error.
func (p provedOutcomes) of(code string) outcome {
	found, ok := p[code]
	if !ok && len(code) == 5 {
		found = p[code[:2]]
	}
	return found
}
