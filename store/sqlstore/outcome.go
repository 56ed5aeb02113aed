package sqlstore

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"regexp"
	"slices"
	"strings"
)

// ErrOutcomeUnknown is wrapped by the error of a change of which nobody knows
// whether it was made: the connection broke, or the context ended, after the
// database had been told to commit it and before it had answered, and what could be
// asked of the database since did not tell. The change was made wholly or not at all,
// or is about to be, if no other change of the client is acknowledged before. To ask
// what is in effect is the way to find out; to make it again blindly could undo what
// others changed since.
var ErrOutcomeUnknown = errors.New("sqlstore: nobody knows whether the change was made")

// verdict is what an error tells about the write that it came from.
type verdict int

const (
	// ambiguous: the write may have been committed.
	ambiguous verdict = iota
	// refused: nothing was changed, and it would come to nothing again.
	refused
	// rolledBack: nothing was changed, because of what others did at that time.
	rolledBack
)

// judge looks at the error of a statement that may have done its work, such as a
// commit.
//
// A driver answers ErrBadConn only if the server cannot have got the statement:
// package database/sql itself would send it again on another connection.
func (s *Store) judge(err error) verdict {
	switch {
	case errors.Is(err, driver.ErrBadConn), s.retryable(err):
		return rolledBack
	case errors.Is(err, sql.ErrTxDone), errors.Is(err, sql.ErrConnDone):
		return refused
	default:
		return s.grammar.classify(err)
	}
}

// judgeOpen looks at the error of a statement that leaves the transaction open.
// However it failed, what is never committed is rolled back.
func (s *Store) judgeOpen(err error) verdict {
	if s.judge(err) == rolledBack {
		return rolledBack
	}
	return refused
}

// classifyPostgreSQL goes by the SQLSTATE, for which the drivers have a method.
// Where the server is shut down or breaks (classes 08, 57, 58, XX), the commit may
// have happened before.
func classifyPostgreSQL(err error) verdict {
	var e interface{ SQLState() string }
	if !errors.As(err, &e) || len(e.SQLState()) != 5 {
		return ambiguous
	}
	state := e.SQLState()
	switch {
	case state == "40001", state == "40P01":
		return rolledBack
	case state == "40003", slices.Contains([]string{"08", "57", "58", "XX"}, state[:2]):
		return ambiguous
	}
	return refused
}

// errorMySQL is how its usual driver writes a server's error, which has no method
// that would tell the number: "Error 1213 (40001): Deadlock found".
var errorMySQL = regexp.MustCompile(`\bError (\d{4})( \([0-9A-Z]{5}\))?: `)

// classifyMySQL goes by the number. 1020, 1205 and 1213 are conflicts; the
// ambiguous ones are connections and servers that were ended meanwhile.
func classifyMySQL(err error) verdict {
	found := errorMySQL.FindStringSubmatch(err.Error())
	if found == nil {
		return ambiguous
	}
	switch found[1] {
	case "1020", "1205", "1213":
		return rolledBack
	case "1053", "1077", "1078", "1079", "1080", "1180", "1317", "1927", "4031":
		return ambiguous
	}
	return refused
}

// The result codes of SQLite that say more than that nothing was changed.
const (
	sqliteBusy   = 5
	sqliteLocked = 6
	sqliteIOErr  = 10
)

// classifySQLite goes by the result code, or by its words in drivers that have no
// method for it. After an error of the disk nobody knows what it holds.
func classifySQLite(err error) verdict {
	var e interface{ Code() int }
	if !errors.As(err, &e) {
		if strings.Contains(err.Error(), "is locked") {
			return rolledBack
		}
		return ambiguous
	}
	switch e.Code() & 0xff { // without what extends it
	case sqliteBusy, sqliteLocked:
		return rolledBack
	case sqliteIOErr:
		return ambiguous
	}
	return refused
}
