// Package mariadb tests package sqlstore on MariaDB.
package mariadb

import (
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"testing"

	"example.com/go-webhookcfg/internal/integration/engine"
	"example.com/go-webhookcfg/internal/integration/engine/sqltest"
	"example.com/go-webhookcfg/store/sqlstore"
	"github.com/go-sql-driver/mysql"
)

var shared = engine.SharedMariaDB()

func TestMain(m *testing.M) {
	// The driver logs a line for each connection that we cut.
	if err := mysql.SetLogger(log.New(io.Discard, "", 0)); err != nil {
		log.Fatal(err)
	}
	os.Exit(shared.Main(m))
}

func mariaDB() sqltest.Engine {
	return sqltest.Engine{
		Open:        sqltest.Driver("mysql"),
		Dialect:     sqlstore.MySQL(),
		Shared:      shared.Get,
		Unsynced:    shared.Own,
		Dedicated:   engine.MariaDB,
		ReadOnly:    readOnly,
		AsUser:      asUser,
		Denied:      denied,
		NoWrites:    "1290",
		NoPrivilege: "1142",
		Limit: sqltest.Trigger{
			File: "mysql.sql", Refused: isLimit, Read: rowsRead,
			Double:  "INSERT INTO {prefix}override SELECT client, gen, CONCAT(entity, '{n}'), url, since FROM {prefix}override WHERE url = ''",
			Analyze: "ANALYZE TABLE {prefix}override",
		},
		Running: "SELECT COUNT(*) FROM information_schema.processlist WHERE id <> CONNECTION_ID() AND info LIKE '%{prefix}client%'",
		// InnoDB only refreshes innodb_trx if nobody has read it for a tenth of a second.
		Waiting: `SELECT SLEEP(0.2) + (SELECT COUNT(*) FROM information_schema.innodb_trx
WHERE trx_state = 'LOCK WAIT' AND trx_query LIKE '%{prefix}delivery%')`,
		CommitErrors: []sqltest.CommitError{
			{Name: "read-only", AtCommit: "SET GLOBAL read_only = 1", After: "SET GLOBAL read_only = 0", Text: "Error 1290"},
		},
	}
}

func isLimit(err error) bool {
	e, ok := errors.AsType[*mysql.MySQLError](err)
	return ok && e.Number == 1644
}

// rowsRead returns how many rows the connection has read.
func rowsRead(t testing.TB, db *sql.DB, _ string) (rows int64) {
	t.Helper()
	err := db.QueryRowContext(t.Context(), `SELECT SUM(variable_value) FROM information_schema.session_status
WHERE variable_name IN ('Handler_read_first', 'Handler_read_key', 'Handler_read_last', 'Handler_read_next', 'Handler_read_prev')`).Scan(&rows)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func TestMariaDB(t *testing.T) { mariaDB().Run(t) }

// TestWithoutAutocommit: a store refuses connections where reads would never see later
// changes.
func TestWithoutAutocommit(t *testing.T) {
	t.Parallel()
	config, err := mysql.ParseDSN(shared.Get(t).DSN())
	if err != nil {
		t.Fatal(err)
	}
	config.Params = map[string]string{"autocommit": "0"}
	mariaDB().Refuses(t, nil, config.FormatDSN(), "connections without autocommit")
}

// TestRestored: copies drop changes that a restored backup doesn't have.
func TestRestored(t *testing.T) {
	t.Parallel()
	server := engine.MariaDB(t)
	server.SkipIfExternal(t)
	db := sqltest.Driver("mysql")(t, server.DSN())
	mariaDB().LostChange(t, server.DSN(),
		func() error { return errors.Join(server.Kill(), server.Save(), server.Restart()) },
		func() error {
			return errors.Join(nextSecond(t, db), server.Kill(), server.Restore(), server.Restart())
		})
}

// nextSecond returns once the clock shows a later second than when the server started.
func nextSecond(t *testing.T, db *sql.DB) error {
	t.Helper()
	const seconds = "SELECT UNIX_TIMESTAMP() - ((UUID_SHORT() >> 24) & 0xffffffff) FROM (SELECT SLEEP(0.1)) s"
	for since := 0; since < 1; {
		if err := db.QueryRowContext(t.Context(), seconds).Scan(&since); err != nil && t.Context().Err() != nil {
			return err
		}
	}
	return nil
}

// readOnly makes the server refuse changes, as a replica does. Administrators can still make
// them.
func readOnly(t testing.TB, admin *sql.DB, on bool) {
	t.Helper()
	if _, err := admin.ExecContext(t.Context(), "SET GLOBAL read_only = ?", on); err != nil {
		t.Fatal(err)
	}
}

// asUser creates a user who can access only one database.
func asUser(t testing.TB, admin *sql.DB, dsn string) string {
	t.Helper()
	return granted(t, admin, dsn, "service", "ALL", "*")
}

// denied creates a user who can only read and write the given tables.
func denied(t testing.TB, admin *sql.DB, dsn string, tables []string) string {
	t.Helper()
	user := "u" + rand.Text()
	t.Cleanup(func() {
		if _, err := admin.Exec(fmt.Sprintf("DROP USER %s@'127.0.0.1'", user)); err != nil {
			t.Error(err)
		}
	})
	return granted(t, admin, dsn, user, "SELECT, INSERT, UPDATE, DELETE", tables...)
}

// granted creates a user with privileges for tables.
func granted(t testing.TB, admin *sql.DB, dsn, user, privileges string, tables ...string) string {
	t.Helper()
	config, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	config.User, config.Passwd = user, rand.Text()
	statements := []string{fmt.Sprintf("CREATE USER %s@'127.0.0.1' IDENTIFIED BY '%s'", user, config.Passwd)}
	for _, table := range tables {
		statements = append(statements, fmt.Sprintf("GRANT %s ON `%s`.%s TO %s@'127.0.0.1'", privileges, config.DBName, table, user))
	}
	for _, statement := range statements {
		if _, err := admin.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	return config.FormatDSN()
}
