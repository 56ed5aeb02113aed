package sqlstore

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"

	"example.com/go-webhookcfg/internal/redact"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// ErrOutcomeUnknown is wrapped by the error of a change of which nobody knows
// whether it was made: the connection broke, or the context ended, after the
// database had been told to commit it and before it had answered, and what could be
// asked of the database since did not tell. The change was made wholly or not at all,
// or is about to be, if no other change of the client is acknowledged before. To ask
// what is in effect is the way to find out; to make it again blindly could undo what
// others changed since.
var ErrOutcomeUnknown = errors.New("sqlstore: nobody knows whether the change was made")

// outcome is what an error tells about the write that it came from.
type outcome int

const (
	// outcomeUnknown: the write may have been committed.
	outcomeUnknown outcome = iota
	// outcomeFailed: nothing was changed, and it would come to nothing again.
	outcomeFailed
	// outcomeConflict: nothing was changed, because of what others did at that time.
	outcomeConflict
)

// classify looks at the error of a statement that may have done its work, such as a
// commit.
//
// A driver answers ErrBadConn only if the server cannot have got the statement:
// package database/sql itself would send it again on another connection.
func (s *Store) classify(err error) outcome {
	switch {
	case errors.Is(err, driver.ErrBadConn), s.retryable(err):
		return outcomeConflict
	case errors.Is(err, sql.ErrTxDone), errors.Is(err, sql.ErrConnDone):
		return outcomeFailed
	default:
		return s.dialect.classify(err)
	}
}

// classifyUncommitted looks at the error of a statement that leaves the transaction open.
// However it failed, what is never committed is rolled back.
func (s *Store) classifyUncommitted(err error) outcome {
	if s.classify(err) == outcomeConflict {
		return outcomeConflict
	}
	return outcomeFailed
}

// wrapError says what was tried, and hides the URL that a driver or a server may have
// quoted, wholly or in part. Nil stays nil.
func wrapError(what string, err error, url egress.URL) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if redact.Quotes(text, strings.TrimPrefix(url.Reveal(), url.String())) {
		text = withheldText(err)
	}
	return redact.Error("sqlstore: "+what+": "+text, err)
}

// withheldText is what can be said of an error whose text cannot be shown.
func withheldText(err error) string {
	const text = "the error quotes the URL, and is not shown"
	if errors.Is(err, ErrOutcomeUnknown) {
		return ErrOutcomeUnknown.Error() + ": " + text
	}
	return text
}

// ErrNewerSchema is wrapped by the error of [Store.Migrate] where a later version
// of this package has been at work. Nothing was changed.
var ErrNewerSchema = errors.New("sqlstore: the schema is of a later version of this package")
