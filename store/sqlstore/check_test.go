package sqlstore_test

import (
	"database/sql/driver"
	"errors"
	"io"
	"strings"
	"testing"

	"example.com/go-webhookcfg/store/sqlstore"
)

// TestCheck: each unsafe setting has its warning. You get an error if the server returns one,
// or the schema is missing.
func TestCheck(t *testing.T) {
	for _, tt := range []struct {
		name    string
		limit   int
		applies string // part of the condition of an advice that applies
		query   error  // of the queries for settings
		db      schema
		want    []string
		is      error
		err     string
	}{
		{"nothing", 8, "", nil, schema{version: current}, nil, nil, ""},
		{"no limit", 0, "", nil, schema{version: current}, []string{"SetMaxOpenConns"}, nil, ""},
		{"a setting", 8, "'fsync'", nil, schema{version: current}, []string{"turn fsync"}, nil, ""},
		{"read-only", 8, "read_only", nil, schema{version: current}, []string{"connect to the primary"}, nil, ""},
		{"lost", 8, "", io.ErrUnexpectedEOF, schema{version: current}, nil, io.ErrUnexpectedEOF, "EOF"},
		{"no table", 8, "", nil, schema{version: noTable}, nil, nil, "wh_delivery: call Migrate"},
		{"standby", 8, "", nil, schema{version: current, standby: true}, nil, sqlstore.ErrStandby, "standby"},
	} {
		s, f := openUnchecked(t, sqlstore.PostgreSQL(), nil, func(call string, args []driver.NamedValue) (resultRows, error) {
			if strings.HasPrefix(call, "SELECT CASE") {
				return resultRows{{tt.applies != "" && strings.Contains(call, tt.applies)}}, tt.query
			}
			return tt.db.on(call, args)
		})
		f.db.SetMaxOpenConns(tt.limit)
		got, err := s.Check(t.Context())
		if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) || tt.is != nil && !errors.Is(err, tt.is) || len(got) != len(tt.want) {
			t.Errorf("%s: %q, %v", tt.name, got, err)
			continue
		}
		for n, want := range tt.want {
			if !strings.Contains(got[n], want) {
				t.Errorf("%s: %q, want %q", tt.name, got[n], want)
			}
		}
		if n := f.db.Stats().InUse; n > 0 {
			t.Errorf("%s: keeps %d connections", tt.name, n)
		}
	}
}
