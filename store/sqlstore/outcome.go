package sqlstore

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"reflect"
	"regexp"
	"strconv"
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

var (
	// PostgreSQL Manual, appendix A "PostgreSQL Error Codes": SQLSTATEs, or their first two
	// characters for the rest of a class.
	postgreSQLOutcomes = provedOutcomes{
		"23":    outcomeFailed,   // integrity constraint violation, of a deferred constraint
		"25006": outcomeFailed,   // read only SQL transaction
		"40":    outcomeFailed,   // transaction rollback
		"40001": outcomeConflict, // serialization failure
		"40P01": outcomeConflict, // deadlock detected
		"40003": outcomeUnknown,  // statement completion unknown
	}
	// MySQL Error Message Reference, "Server Error Message Reference", and MySQL Reference
	// Manual, "InnoDB Error Handling"; MariaDB Documentation, "MariaDB Error Codes". A COMMIT
	// checks read_only before it starts ("Server System Variables").
	mySQLOutcomes = provedOutcomes{
		"1020": outcomeConflict, // ER_CHECKREAD, of MariaDB with innodb_snapshot_isolation
		"1205": outcomeConflict, // ER_LOCK_WAIT_TIMEOUT
		"1213": outcomeConflict, // ER_LOCK_DEADLOCK, in a Galera cluster also at commit
		"1290": outcomeFailed,   // ER_OPTION_PREVENTS_STATEMENT, read_only
	}
	// SQLite Documentation, "Result and Error Codes": primary codes. After an I/O error, for
	// instance of fsync, the content of the disk is unknown.
	sqLiteOutcomes = provedOutcomes{
		"5":  outcomeConflict, // SQLITE_BUSY
		"6":  outcomeConflict, // SQLITE_LOCKED
		"8":  outcomeFailed,   // SQLITE_READONLY
		"13": outcomeFailed,   // SQLITE_FULL
		"19": outcomeFailed,   // SQLITE_CONSTRAINT
	}
)

// of returns the outcome that a code proves. "" is the code of every other error.
func (p provedOutcomes) of(code string) outcome {
	found, ok := p[code]
	if !ok && len(code) == 5 {
		found = p[code[:2]]
	}
	return found
}

// postgreSQLCode returns the SQLSTATE, for which the drivers have a method.
func postgreSQLCode(err error) string {
	e, ok := errors.AsType[interface {
		error
		SQLState() string
	}](err)
	if !ok || !statePattern.MatchString(e.SQLState()) {
		return ""
	}
	return e.SQLState()
}

var statePattern = regexp.MustCompile(`^[0-9A-Z]{5}$`)

// mySQLCode returns the number, for which the common driver has a field.
func mySQLCode(err error) string {
	if number, ok := integerField(err, "Number"); ok {
		return strconv.FormatInt(number, 10)
	}
	return ""
}

// sqLiteCode returns the primary result code, for which a driver has a method or a field.
func sqLiteCode(err error) string {
	e, ok := errors.AsType[interface {
		error
		Code() int
	}](err)
	if ok {
		return strconv.Itoa(e.Code() & 0xff)
	}
	if code, ok := integerField(err, "Code"); ok {
		return strconv.FormatInt(code&0xff, 10)
	}
	return ""
}

// integerField returns the field of the first error of the tree that is a structure with an
// integer field of that name. Unlike a type assertion it needs no import of the driver.
func integerField(err error, name string) (int64, bool) {
	if v := reflect.Indirect(reflect.ValueOf(err)); v.Kind() == reflect.Struct {
		switch field := v.FieldByName(name); {
		case !field.IsValid():
		case field.CanInt():
			return field.Int(), true
		case field.CanUint():
			return int64(field.Uint()), true
		}
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		return integerField(e.Unwrap(), name)
	case interface{ Unwrap() []error }:
		for _, err := range e.Unwrap() {
			if found, ok := integerField(err, name); ok {
				return found, true
			}
		}
	}
	return 0, false
}
