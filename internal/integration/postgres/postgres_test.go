// Package postgres tests package sqlstore on PostgreSQL.
package postgres

import (
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"

	"example.com/go-webhookcfg/internal/integration/engine"
	"example.com/go-webhookcfg/internal/integration/engine/sqltest"
	"example.com/go-webhookcfg/store/sqlstore"
	"github.com/jackc/pgx/v5/pgconn"
	_ "github.com/jackc/pgx/v5/stdlib"
)

var shared = engine.SharedPostgreSQL()

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

func postgreSQL() sqltest.Engine {
	return sqltest.Engine{
		Open:        sqltest.Driver("pgx"),
		Dialect:     sqlstore.PostgreSQL(),
		Shared:      shared.Get,
		Unsynced:    shared.Own,
		Dedicated:   engine.PostgreSQL,
		ReadOnly:    readOnly,
		AsUser:      func(_ testing.TB, _ *sql.DB, dsn string) string { return dsn },
		Denied:      denied,
		NoWrites:    "25006",
		NoPrivilege: "42501",
		Limit: sqltest.Trigger{
			File: "postgresql.sql", Refused: isLimit, Drop: "DROP FUNCTION wh_limit CASCADE", Read: rowsRead,
			Double:  "INSERT INTO {prefix}override SELECT client, gen, entity || '{n}'::bytea, url, since FROM {prefix}override WHERE url = ''",
			Analyze: "ANALYZE {prefix}override",
		},
		Waiting: "SELECT COUNT(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%{prefix}delivery%'",
		CommitErrors: []sqltest.CommitError{
			{
				Name: "constraint", Text: "23514",
				Before: `CREATE FUNCTION {prefix}commit() RETURNS trigger LANGUAGE plpgsql AS
$$BEGIN RAISE EXCEPTION USING ERRCODE = '23514', MESSAGE = 'refused'; RETURN NULL; END$$;
CREATE CONSTRAINT TRIGGER {prefix}commit AFTER INSERT OR UPDATE ON {prefix}client
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION {prefix}commit()`,
			},
		},
	}
}

func isLimit(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && e.Code == "WH001"
}

// rowsRead returns how many rows of a store's overrides, and of their indexes, were read.
func rowsRead(t testing.TB, db *sql.DB, prefix string) (rows int64) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), "SELECT pg_stat_force_next_flush()"); err != nil {
		t.Fatal(err)
	}
	err := db.QueryRowContext(t.Context(), `SELECT t.seq_tup_read + sum(i.idx_tup_read)
FROM pg_stat_user_tables t JOIN pg_stat_user_indexes i USING (relid) WHERE t.relname = $1 GROUP BY t.seq_tup_read`, prefix+"override").Scan(&rows)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// readOnly makes new connections refuse changes, as a standby does.
func readOnly(t testing.TB, admin *sql.DB, on bool) {
	t.Helper()
	statement := "ALTER ROLE CURRENT_USER RESET default_transaction_read_only"
	if on {
		statement = "ALTER ROLE CURRENT_USER SET default_transaction_read_only = on"
	}
	if _, err := admin.ExecContext(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

// denied creates a user who can only read and write the given tables.
func denied(t testing.TB, admin *sql.DB, dsn string, tables []string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	user, password := "u"+strings.ToLower(rand.Text()), rand.Text()
	u.User = url.UserPassword(user, password)
	for _, statement := range []string{
		fmt.Sprintf("CREATE USER %s PASSWORD '%s'", user, password),
		fmt.Sprintf("GRANT SELECT, INSERT, UPDATE, DELETE ON %s TO %s", strings.Join(tables, ", "), user),
	} {
		if _, err := admin.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if _, err := admin.Exec(fmt.Sprintf("DROP OWNED BY %s; DROP USER %s", user, user)); err != nil {
			t.Error(err)
		}
	})
	return u.String()
}

// having adds a session setting to a DSN.
func having(setting, value string) func(testing.TB, string) string {
	return func(t testing.TB, dsn string) string {
		t.Helper()
		u, err := url.Parse(dsn)
		if err != nil {
			t.Fatal(err)
		}
		query := u.Query()
		query.Set(setting, value)
		u.RawQuery = query.Encode()
		return u.String()
	}
}

func TestPostgreSQL(t *testing.T) { postgreSQL().Run(t) }

// TestSerializable: the store also works at the strictest isolation level.
func TestSerializable(t *testing.T) {
	e := postgreSQL()
	e.Open = sqltest.Driver("pgx", having("default_transaction_isolation", "serializable"))
	e.Run(t, "Concurrency", "Linearizable", "Schema", "Upgrade", "Deliveries", "Limit", "Overtaking") // the other tests are about the server
}

// TestTablesOfAnotherDialect: a store refuses tables that would make its feed miss changes.
func TestTablesOfAnotherDialect(t *testing.T) {
	t.Parallel()
	const undefinedColumn = "SQLSTATE 42703"
	postgreSQL().Refuses(t, []string{"ALTER TABLE {prefix}client DROP COLUMN chg"}, shared.Get(t).DSN(), undefinedColumn)
}

// TestMissingKey: a restore creates the keys last, and pg_restore -t leaves them out. Every check
// names the table then, and says what to do.
func TestMissingKey(t *testing.T) {
	e := postgreSQL()
	db := e.Open(t, shared.Own(t).DSN())
	open := func() *sqlstore.Store {
		st, err := sqlstore.New(db, e.Dialect, nil)
		if err != nil {
			t.Fatal(err)
		}
		return st
	}
	if err := open().Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	execute := func(statement string) {
		t.Helper()
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	for _, table := range []string{"wh_schema", "wh_client", "wh_override", "wh_delivery"} {
		var definition string
		if err := db.QueryRowContext(t.Context(), "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = $1", table+"_pkey").Scan(&definition); err != nil {
			t.Fatal(err)
		}
		execute("ALTER TABLE " + table + " DROP CONSTRAINT " + table + "_pkey")
		st := open()
		for call, do := range map[string]func() error{
			"Check":   func() error { _, err := st.Check(t.Context()); return err },
			"Healthy": func() error { return st.Healthy(t.Context()) },
			"Migrate": func() error { return st.Migrate(t.Context()) },
		} {
			if err := do(); err == nil || !strings.Contains(err.Error(), "primary keys are missing: "+table+":") {
				t.Errorf("%s without the key of %s: %v", call, table, err)
			}
		}
		execute("ALTER TABLE " + table + " ADD CONSTRAINT " + table + "_pkey " + definition)
		if err := open().Healthy(t.Context()); err != nil {
			t.Errorf("%s: %v", table, err)
		}
	}
}

// TestLimitWithoutSearchPath: pg_restore fills the tables with an empty search_path, and the
// trigger counts nevertheless.
func TestLimitWithoutSearchPath(t *testing.T) {
	e := postgreSQL()
	db := e.Open(t, shared.Own(t).DSN())
	st, err := sqlstore.New(db, e.Dialect, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	script, err := os.ReadFile("../../../store/sqlstore/limit/" + e.Limit.File)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), string(script)); err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(t.Context(), "SET search_path = ''"); err != nil {
		t.Fatal(err)
	}
	insert := func(from, to int) error {
		_, err := db.ExecContext(t.Context(), fmt.Sprintf(`INSERT INTO public.wh_override (client, gen, entity, url, since)
SELECT 'a', 1, convert_to('e' || n, 'UTF8'), 'https://hooks.example.com/in', 1 FROM generate_series(%d, %d) n`, from, to))
		return err
	}
	if err := insert(1, 500); err != nil {
		t.Fatal(err)
	}
	if err := insert(501, 501); !isLimit(err) {
		t.Errorf("beyond the limit: %v", err)
	}
}

// TestLimitOfALostTable: once the lost table of overrides was created again, as the error says, the
// same file limits it again.
func TestLimitOfALostTable(t *testing.T) {
	e := postgreSQL()
	db := e.Open(t, shared.Own(t).DSN())
	st, err := sqlstore.New(db, e.Dialect, nil)
	if err != nil {
		t.Fatal(err)
	}
	script, err := os.ReadFile("../../../store/sqlstore/limit/" + e.Limit.File)
	if err != nil {
		t.Fatal(err)
	}
	for _, lose := range []string{"", "DROP TABLE wh_override CASCADE; UPDATE wh_schema SET version = 0"} {
		if _, err := db.ExecContext(t.Context(), lose); err != nil {
			t.Fatal(err)
		}
		if err := st.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := db.ExecContext(t.Context(), string(script)); err != nil {
			t.Fatal(err)
		}
	}
}
