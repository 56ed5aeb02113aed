package sqlstore_test

import (
	"database/sql/driver"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"example.com/go-webhookcfg/store/sqlstore"
)

// versioned handles the calls of an empty database. Its nth query of the version returns
// the nth result: an error, no row for a number below 0, or the number.
func versioned(results ...any) func(string, []driver.NamedValue) (resultRows, error) {
	return func(call string, _ []driver.NamedValue) (resultRows, error) {
		switch {
		case strings.HasPrefix(call, "SELECT GET_LOCK"):
			return resultRows{{int64(1)}}, nil
		case isUsableCheck(call):
			return resultRows{{true}}, nil
		case !strings.HasPrefix(call, "SELECT version"):
			return nil, nil
		}
		found := results[0]
		results = results[1:]
		switch v := found.(type) {
		case error:
			return nil, v
		case int:
			if v >= 0 {
				return resultRows{{int64(v)}}, nil
			}
		}
		return nil, nil
	}
}

func isUsableCheck(call string) bool {
	return strings.HasPrefix(call, "SELECT COUNT(chg)") || call == "SELECT @@autocommit"
}

var errNoTable = errors.New("no such table")

func TestMigrateEmptyDatabase(t *testing.T) {
	for _, dialect := range dialects() {
		s, f := openFake(t, dialect, nil, versioned(errNoTable, -1))
		if err := s.Migrate(t.Context()); err != nil {
			t.Errorf("%s: %v", dialect, err)
		}
		if f.count("CREATE TABLE") != 3 || f.count("INSERT") != 1 {
			t.Errorf("%s: %s", dialect, f.shape())
		}
	}
}

func TestMigrateCurrentSchema(t *testing.T) {
	for _, dialect := range dialects() {
		s, f := openFake(t, dialect, nil, versioned(1))
		if err := s.Migrate(t.Context()); err != nil || f.count("SELECT") != len(f.calls)-1 {
			t.Errorf("%s: %s: %v", dialect, f.shape(), err)
		}
	}
}

// TestMigrateUnusable: Migrate fails if the tables or the connections do not fit the
// dialect, whether the schema is current or not.
func TestMigrateUnusable(t *testing.T) {
	undefined := stateError("42703")
	for _, dialect := range []sqlstore.Dialect{sqlstore.PostgreSQL(), sqlstore.MySQL()} {
		for _, found := range [][]any{{1}, {errNoTable, -1}} {
			for _, checked := range []struct {
				rows resultRows
				err  error
			}{{resultRows{{false}}, nil}, {resultRows{{int64(0)}}, nil}, {nil, undefined}, {nil, nil}} {
				database := versioned(found...)
				s, f := openFake(t, dialect, nil, func(call string, args []driver.NamedValue) (resultRows, error) {
					if isUsableCheck(call) {
						return checked.rows, checked.err
					}
					return database(call, args)
				})
				if err := s.Migrate(t.Context()); err == nil || !errors.Is(err, checked.err) && checked.err != nil {
					t.Errorf("%s: %s: %v", dialect, f.shape(), err)
				}
			}
		}
	}
}

// TestMigrateConcurrently: a process that waited for the lock finds the schema current.
func TestMigrateConcurrently(t *testing.T) {
	for _, dialect := range dialects() {
		s, f := openFake(t, dialect, nil, versioned(errNoTable, 1))
		if err := s.Migrate(t.Context()); err != nil || f.count("CREATE") > 1 || f.count("INSERT") > 0 {
			t.Errorf("%s: %s: %v", dialect, f.shape(), err)
		}
	}
}

func TestMigrateNewerSchema(t *testing.T) {
	for _, dialect := range dialects() {
		for _, found := range [][]any{{2}, {errNoTable, 2}} {
			s, f := openFake(t, dialect, nil, versioned(found...))
			if err := s.Migrate(t.Context()); !errors.Is(err, sqlstore.ErrNewerSchema) {
				t.Errorf("%s: %v", dialect, err)
			}
			if f.count("INSERT") > 0 || f.count("COMMIT")+f.count("commit") > 0 {
				t.Errorf("%s: %s", dialect, f.shape())
			}
		}
	}
}

// TestMigrateInterrupted: the lock of a connection is released, or the connection closed.
func TestMigrateInterrupted(t *testing.T) {
	broken := errors.New("broken")
	for _, tt := range []struct {
		dialect sqlstore.Dialect
		end     string
	}{{sqlstore.MySQL(), "SELECT RELEASE_LOCK"}, {sqlstore.SQLite(), "ROLLBACK"}, {sqlstore.PostgreSQL(), "rollback"}} {
		for _, endFails := range []bool{false, true} {
			empty := versioned(errNoTable, -1)
			s, f := openFake(t, tt.dialect, nil, func(call string, args []driver.NamedValue) (resultRows, error) {
				if strings.HasPrefix(call, "CREATE TABLE IF NOT EXISTS wh_override") || endFails && strings.HasPrefix(call, tt.end) {
					return nil, broken
				}
				return empty(call, args)
			})
			if err := s.Migrate(t.Context()); !errors.Is(err, broken) {
				t.Errorf("%s: %v", tt.dialect, err)
			}
			if f.count(tt.end) != 1 {
				t.Errorf("%s: %s", tt.dialect, f.shape())
			}
			if inTx := tt.end == "rollback"; !inTx && f.opened(0) == 0 != endFails {
				t.Errorf("%s: %d connections are open; release failed: %v", tt.dialect, f.opened(0), endFails)
			}
		}
	}
}

func TestMigrateRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conflict := failing("CREATE TABLE IF NOT EXISTS wh_override", stateError("40001"), 2)
		empty := versioned(errNoTable, -1, -1, -1)
		s, f := openFake(t, sqlstore.PostgreSQL(), nil, func(call string, args []driver.NamedValue) (resultRows, error) {
			if _, err := conflict(call, args); err != nil {
				return nil, err
			}
			return empty(call, args)
		})
		if err := s.Migrate(t.Context()); err != nil || f.count("rollback") != 2 || f.count("commit") != 1 {
			t.Errorf("%s: %v", f.shape(), err)
		}
	})
}

func TestMigrateLockTimeout(t *testing.T) {
	for _, got := range []resultRows{{{int64(0)}}, {{nil}}} {
		s, f := openFake(t, sqlstore.MySQL(), nil, func(call string, _ []driver.NamedValue) (resultRows, error) {
			switch {
			case strings.HasPrefix(call, "SELECT GET_LOCK"):
				return got, nil
			case strings.HasPrefix(call, "SELECT version"):
				return nil, errNoTable
			}
			return nil, nil
		})
		if err := s.Migrate(t.Context()); err == nil || f.count("CREATE") > 0 {
			t.Errorf("%s: %v", f.shape(), err)
		}
	}
}
