package sqlstore_test

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"example.com/go-webhookcfg/store/sqlstore"
)

// schema is an empty database. It only simulates the version of the schema.
type schema struct {
	version int  // noTable, noRow, or the version in the row
	unfit   bool // for the dialect
	standby bool
	err     error // of the check, if its table exists
	locked  int   // if not 0, the version that another process leaves behind
	lost    string
	denied  string // the table that the user has no privilege for
}

const (
	noTable = -2
	noRow   = -1
	current = 3
)

var errNoTable = errors.New("no such table (1146)")

func (s *schema) on(call string, args []driver.NamedValue) (resultRows, error) {
	switch {
	case strings.HasPrefix(call, "SELECT COUNT(*) FROM"): // the catalogue
		if s.version == noTable || args[0].Value == s.lost {
			return resultRows{{int64(0)}}, nil
		}
		return resultRows{{int64(1)}}, nil
	case strings.HasPrefix(call, "SELECT GET_LOCK"):
		return resultRows{{int64(1)}}, nil
	case strings.HasPrefix(call, "CREATE TABLE IF NOT EXISTS wh_schema"):
		s.version = cmp.Or(s.locked, max(s.version, noRow))
	case strings.HasPrefix(call, "INSERT INTO wh_schema"):
		if s.version < 1 {
			s.version = current
		}
	case strings.HasPrefix(call, "UPDATE wh_schema"):
		if s.version == current {
			s.version = current + 1
		}
	case strings.Contains(call, "AS identity, NULL,"):
		return resultRows{{false, "id", nil, nil}}, nil
	case strings.Contains(call, "AS identity"):
		return resultRows{{false, "id", "5:5:", int64(5), int64(0), nil}}, nil
	case !strings.HasPrefix(call, "SELECT version"):
	case s.version == noTable, s.lost != "" && strings.Contains(call, s.lost):
		return nil, errNoTable
	case s.denied != "" && strings.Contains(call, s.denied):
		return nil, errors.New("permission denied (42501, 1142)")
	case s.version == noRow:
	case strings.HasPrefix(call, "SELECT version,"):
		return resultRows{{int64(s.version), !s.unfit, s.standby}}, s.err
	default:
		return resultRows{{int64(s.version)}}, nil
	}
	return nil, nil
}

// openSchema returns a store that hasn't checked the schema yet.
func openSchema(t *testing.T, dialect sqlstore.Dialect, db *schema) (*sqlstore.Store, *fake) {
	t.Helper()
	return openUnchecked(t, dialect, nil, db.on)
}

// TestMigrate: a migration completes anything that an earlier one left behind.
func TestMigrate(t *testing.T) {
	for _, dialect := range dialects() {
		for _, version := range []int{noTable, noRow, 0} {
			db := &schema{version: version}
			s, f := openSchema(t, dialect, db)
			if err := s.Migrate(t.Context()); err != nil || db.version != current {
				t.Errorf("%s: version %d led to version %d: %v", dialect, version, db.version, err)
			}
			if f.count("INSERT INTO wh_schema") != 1 || f.count("CREATE TABLE") < 4 {
				t.Errorf("%s: %s", dialect, f.shape())
			}
			sent := f.count("SELECT version")
			if _, err := s.Resolve(t.Context(), "acme", "e1"); err != nil || f.count("SELECT version") > sent {
				t.Errorf("%s: the schema was checked again: %s: %v", dialect, f.shape(), err)
			}
		}
	}
}

// nextVersion is a migration to the version after the current one.
const nextVersion = `-- Version 4 adds a table.
CREATE TABLE IF NOT EXISTS wh_more (id INT);
UPDATE wh_schema SET version = 4 WHERE id = 1 AND version = 3;
`

// TestUpgrade: a migration runs the files of the missing versions, and no others. A store
// that knows a later version works with the tables of the version before.
func TestUpgrade(t *testing.T) {
	for _, dialect := range dialects() {
		for _, version := range []int{noTable, noRow, current, current + 1} {
			db := &schema{version: version}
			s, f := openSchema(t, sqlstore.WithMigration(dialect, nextVersion), db)
			if version >= current {
				if _, err := s.Resolve(t.Context(), "acme", "e1"); err != nil {
					t.Errorf("%s: before the migration from version %d: %v", dialect, version, err)
				}
			}
			earlier, _ := openSchema(t, dialect, db)
			if version == current {
				if _, err := earlier.Resolve(t.Context(), "acme", "e1"); err != nil {
					t.Errorf("%s: %v", dialect, err)
				}
			}
			if err := s.Migrate(t.Context()); err != nil || db.version != current+1 {
				t.Errorf("%s: version %d led to version %d: %v", dialect, version, db.version, err)
			}
			isNew, isOlder := version < current, version <= current
			if (f.count("INSERT INTO wh_schema") == 1) != isNew || (f.count("UPDATE wh_schema") == 1) != isOlder || (f.count("CREATE TABLE IF NOT EXISTS wh_client") == 1) != isNew {
				t.Errorf("%s: from version %d: %s", dialect, version, f.shape())
			}
			if _, err := earlier.Resolve(t.Context(), "acme", "e1"); errors.Is(err, sqlstore.ErrNewerSchema) != (version != current) {
				t.Errorf("%s: a store that knows only version %d, after the migration from version %d: %v", dialect, current, version, err)
			}
		}
	}
}

// TestOldSchema: tables of versions that were never released are refused and left alone. The
// error says what to do.
func TestOldSchema(t *testing.T) {
	for _, dialect := range dialects() {
		for _, db := range []*schema{{version: 1}, {version: 2}, {version: noTable, locked: 2}} {
			s, f := openSchema(t, dialect, db)
			all := calls(s)
			all["migrate"] = s.Migrate
			if db.locked != 0 {
				all = map[string]func(context.Context) error{"migrate": s.Migrate}
			}
			if dialect == sqlstore.MySQL() {
				delete(all, "changes")
			}
			for name, call := range all {
				err := call(t.Context())
				for _, want := range []string{"never released", "drop the tables wh_schema, wh_client, wh_override and wh_delivery", "Options.Prefix"} {
					if err == nil || !strings.Contains(err.Error(), want) {
						t.Errorf("%s: %s: the error does not contain %q: %v", dialect, name, want, err)
					}
				}
			}
			if db.locked == 0 && f.count("") != f.count("SELECT version,")+f.count("connect") || f.count("INSERT")+f.count("UPDATE")+f.count("commit")+f.count("COMMIT") > 0 {
				t.Errorf("%s: %s", dialect, f.shape())
			}
		}
	}
}

// TestLostTable: if a table of a complete schema is missing, every call and Migrate name it, and
// say how to go on. Migrate doesn't create it again.
func TestLostTable(t *testing.T) {
	for _, dialect := range dialects() {
		const together = ", and both wh_client and wh_override from the same one, or dropped overrides can come back; only if you can do without "
		for lost, tells := range map[string]string{
			"wh_client": together + "all webhooks of all clients, ", "wh_override": together + "what clients have set for single entities, and those that they turned off can get the default again, ",
			"wh_delivery": "indexes; only if you can do without what was in it, ",
		} {
			s, f := openSchema(t, dialect, &schema{version: current, lost: lost})
			all := calls(s)
			all["migrate"], all["healthy"] = s.Migrate, s.Healthy
			all["check"] = func(ctx context.Context) error { return second(s.Check(ctx)) }
			if dialect == sqlstore.MySQL() {
				delete(all, "changes")
			}
			for name, call := range all {
				err := call(t.Context())
				if lost == "wh_override" && (err == nil || !strings.Contains(err.Error(), "; if a trigger limited")) {
					t.Errorf("%s: %s without %s: %v", dialect, name, lost, err)
				}
				if err == nil || !strings.Contains(err.Error(), "lost: "+lost+": restore it") || !strings.Contains(err.Error(), "UPDATE wh_schema SET version = 0") || !strings.Contains(err.Error(), tells) {
					t.Errorf("%s: %s without %s: %v", dialect, name, lost, err)
				}
			}
			if f.count("CREATE")+f.count("INSERT")+f.count("UPDATE") > 0 {
				t.Errorf("%s: %s", dialect, f.shape())
			}
		}
	}
}

// TestDeniedTable: a user without privileges for one of the tables can't use them, except without those
// for deliveries. Nobody needs to wait for a request to learn that.
func TestDeniedTable(t *testing.T) {
	for _, dialect := range []sqlstore.Dialect{sqlstore.PostgreSQL(), sqlstore.MySQL()} {
		for denied, want := range map[string]string{"wh_client": "permission denied", "wh_override": "permission denied", "wh_delivery": ""} {
			s, _ := openSchema(t, dialect, &schema{version: current, denied: denied})
			for name, err := range map[string]error{
				"healthy": s.Healthy(t.Context()), "migrate": s.Migrate(t.Context()), "resolve": second(s.Resolve(t.Context(), "acme", "e1")),
			} {
				if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
					t.Errorf("%s: %s without privileges for %s: %v", dialect, name, denied, err)
				}
			}
		}
	}
}

func TestMigrateCurrentSchema(t *testing.T) {
	for _, dialect := range dialects() {
		s, f := openSchema(t, dialect, &schema{version: current})
		if err := s.Migrate(t.Context()); err != nil || f.shape() != "connect SELECT" {
			t.Errorf("%s: %s: %v", dialect, f.shape(), err)
		}
	}
}

// TestMigrateUnfit: Migrate fails if the tables or the connections don't fit the dialect,
// even if the schema is current. If the tables exist, it takes no lock and creates nothing,
// because it may lack the privileges.
func TestMigrateUnfit(t *testing.T) {
	undefined := stateError("42703")
	for _, dialect := range dialects() {
		for _, version := range []int{current, noTable} {
			for _, db := range []*schema{{version: version, unfit: true}, {version: version, err: undefined}} {
				s, f := openSchema(t, dialect, db)
				err := s.Migrate(t.Context())
				if err == nil || !errors.Is(err, db.err) && db.err != nil || strings.HasSuffix(err.Error(), ": ") {
					t.Errorf("%s: %s: %v", dialect, f.shape(), err)
				}
				if db.unfit && version == current && f.shape() != "connect SELECT" {
					t.Errorf("%s: version %d: %s", dialect, version, f.shape())
				}
			}
		}
	}
}

// TestMigrateStandby: Migrate changes nothing on a standby.
func TestMigrateStandby(t *testing.T) {
	for _, dialect := range dialects() {
		for _, dialect := range []sqlstore.Dialect{dialect, sqlstore.WithMigration(dialect, nextVersion)} {
			s, f := openSchema(t, dialect, &schema{version: current, standby: true})
			if err := s.Migrate(t.Context()); !errors.Is(err, sqlstore.ErrStandby) || f.shape() != "connect SELECT" {
				t.Errorf("%s: %s: %v", dialect, f.shape(), err)
			}
		}
	}
}

// TestMigrateConcurrently: a process that waited for the lock finds the schema current.
func TestMigrateConcurrently(t *testing.T) {
	for _, dialect := range dialects() {
		s, f := openSchema(t, dialect, &schema{version: noTable, locked: current})
		if err := s.Migrate(t.Context()); err != nil || f.count("CREATE") > 1 || f.count("INSERT") > 0 || f.count("UPDATE") > 0 {
			t.Errorf("%s: %s: %v", dialect, f.shape(), err)
		}
	}
}

func TestMigrateNewerSchema(t *testing.T) {
	for _, dialect := range dialects() {
		for _, db := range []*schema{{version: current + 1}, {version: noTable, locked: current + 1}, {version: noRow, locked: current + 1}} {
			s, f := openSchema(t, dialect, db)
			if err := s.Migrate(t.Context()); !errors.Is(err, sqlstore.ErrNewerSchema) {
				t.Errorf("%s: %v", dialect, err)
			}
			if db.locked == 0 && f.shape() != "connect SELECT" || f.count("INSERT") > 0 || f.count("COMMIT")+f.count("commit") > 0 {
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
			empty := &schema{version: noTable}
			s, f := openUnchecked(t, tt.dialect, nil, func(call string, args []driver.NamedValue) (resultRows, error) {
				if strings.HasPrefix(call, "CREATE TABLE IF NOT EXISTS wh_override") || endFails && strings.HasPrefix(call, tt.end) {
					return nil, broken
				}
				return empty.on(call, args)
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
		empty := &schema{version: noTable}
		s, f := openUnchecked(t, sqlstore.PostgreSQL(), nil, func(call string, args []driver.NamedValue) (resultRows, error) {
			if _, err := conflict(call, args); err != nil {
				return nil, err
			}
			return empty.on(call, args)
		})
		if err := s.Migrate(t.Context()); err != nil || f.count("rollback") != 2 || f.count("commit") != 1 {
			t.Errorf("%s: %v", f.shape(), err)
		}
	})
}

// TestMigrationLocks: stores with the same tables take the same lock. Others don't wait for
// it.
func TestMigrationLocks(t *testing.T) {
	for _, dialect := range []sqlstore.Dialect{sqlstore.PostgreSQL(), sqlstore.MySQL()} {
		lock := func(prefix string) (key driver.Value) {
			db := &schema{version: noTable}
			s, _ := openUnchecked(t, dialect, &sqlstore.Options{Prefix: prefix}, func(call string, args []driver.NamedValue) (resultRows, error) {
				if strings.Contains(call, "pg_advisory_xact_lock") || strings.HasPrefix(call, "SELECT GET_LOCK") {
					key = args[0].Value
				}
				return db.on(strings.ReplaceAll(call, prefix, "wh_"), args)
			})
			if err := s.Migrate(t.Context()); err != nil {
				t.Errorf("%s: %v", dialect, err)
			}
			return key
		}
		if one, same, other := lock("one_"), lock("one_"), lock("other_"); one == nil || one != same || one == other {
			t.Errorf("%s: locks %v, %v and, with another prefix, %v", dialect, one, same, other)
		}
	}
}

func TestMigrateLockTimeout(t *testing.T) {
	for _, got := range []resultRows{{{int64(0)}}, {{nil}}} {
		s, f := openUnchecked(t, sqlstore.MySQL(), nil, func(call string, _ []driver.NamedValue) (resultRows, error) {
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
