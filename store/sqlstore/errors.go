package sqlstore

import (
	"errors"
	"reflect"
	"strings"

	"example.com/go-webhookcfg/internal/redact"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

var (
	// ErrOutcomeUnknown means that a change may or may not have been made. Its commit was
	// sent, but the connection broke or the context ended before the server acknowledged it,
	// and the store couldn't find out afterwards. The change is never applied in part. It can
	// still take effect later, until another change of the client is acknowledged.
	//
	// Apply the change again. If someone else may have changed the same webhook meanwhile,
	// call Resolve first, or you would undo their change.
	ErrOutcomeUnknown = errors.New("sqlstore: commit not acknowledged, so the change may or may not have been made")
	// ErrNewerSchema means that a later version of this package has migrated the tables.
	// Nothing was changed. Start that version, or a later one.
	ErrNewerSchema = errors.New("sqlstore: schema of a later version of this package")
	// ErrStandby means that a read reached a server that may lack acknowledged changes: a hot
	// standby of PostgreSQL, or a read-only server of MySQL or MariaDB. Connect to the primary.
	//
	// The store only learns that a server is a standby after the server took the snapshot of
	// the read. So a read in flight during a promotion can succeed without the latest
	// changes.
	ErrStandby = errors.New("sqlstore: the server is a standby or read-only: connect to the primary")
)

// wrapError adds the operation to an error; nil stays nil. If the driver or the server quoted
// the URL, even in part, wrapError drops the text and keeps only the server's code.
func (s *Store) wrapError(operation string, err error, url egress.URL) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if redact.Quotes(text, strings.TrimPrefix(url.Reveal(), url.String())) {
		text = s.withheldText(err)
	}
	return redact.Error("sqlstore: "+operation+": "+redact.Printable(text), err)
}

// withheldText is the text for an error that quotes the URL.
func (s *Store) withheldText(err error) string {
	text := "error text withheld because it quotes the URL"
	if code := s.dialect.code(err); code != "" {
		text += " (" + s.dialect.codes + " " + code + ")"
	}
	if errors.Is(err, ErrOutcomeUnknown) {
		text = ErrOutcomeUnknown.Error() + ": " + text
	}
	return text
}

// integerField returns the integer field with that name of the first error in the tree that
// is a struct and has one. A type assertion would need an import of the driver.
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
