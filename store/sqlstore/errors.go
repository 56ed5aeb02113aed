package sqlstore

import (
	"errors"
	"reflect"
	"strings"

	"example.com/go-webhookcfg/internal/redact"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

var (
	// ErrOutcomeUnknown is wrapped by the error of a change whose commit was sent but not
	// acknowledged, because the connection broke or the context ended, and whose outcome
	// could not be determined afterwards. The change was applied completely or not at
	// all; it may still be applied, unless another change of the client is acknowledged
	// first. Apply it again, but call Resolve first if someone else may have changed the
	// same webhook since: a repeat would undo that change.
	ErrOutcomeUnknown = errors.New("sqlstore: commit outcome unknown")
	// ErrNewerSchema is wrapped by the error of a call if the tables were migrated by a later
	// version of this package. Nothing was changed.
	ErrNewerSchema = errors.New("sqlstore: schema of a later version of this package")
	// ErrStandby is wrapped by the error of a read from a hot standby of PostgreSQL that is
	// not within [Options.StandbyLag], or from a server of MySQL or MariaDB that is read-only,
	// as replicas are: it may lack acknowledged changes.
	ErrStandby = errors.New("sqlstore: server is a standby")
)

// wrapError adds the operation to an error. If the driver or the server quoted the URL in the
// text of the error, wholly or in part, only the code of the server remains of it. wrapError
// returns nil for nil.
func (s *Store) wrapError(operation string, err error, url egress.URL) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if redact.Quotes(text, strings.TrimPrefix(url.Reveal(), url.String())) {
		text = s.withheldText(err)
	}
	return redact.Error("sqlstore: "+operation+": "+text, err)
}

// withheldText replaces the text of an error that quotes the URL.
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
