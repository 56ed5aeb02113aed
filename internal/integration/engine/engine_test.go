package engine_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"example.com/go-webhookcfg/internal/integration/engine"
	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
)

// engines maps the names of drivers to their servers.
func engines() map[string]func(testing.TB) *engine.Server {
	return map[string]func(testing.TB) *engine.Server{"pgx": engine.PostgreSQL, "mysql": engine.MariaDB}
}

func open(t *testing.T, driver, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func execute(t *testing.T, db *sql.DB, statement string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

func count(t *testing.T, db *sql.DB) (n int) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM engine_rows").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestKillAndRestart: a restarted server has all rows, and a restored server has the copy's.
func TestKillAndRestart(t *testing.T) {
	for driver, start := range engines() {
		t.Run(driver, func(t *testing.T) {
			t.Parallel()
			server := start(t)
			server.SkipIfExternal(t)
			db := open(t, driver, server.DSN())
			execute(t, db, "CREATE TABLE engine_rows (n int)")
			for n := 1; n <= 3; n++ {
				execute(t, db, "INSERT INTO engine_rows VALUES (1)")
				if err := server.Kill(); err != nil {
					t.Fatal(err)
				}
				if err := db.PingContext(t.Context()); err == nil {
					t.Error("a killed server responds")
				}
				if n == 2 {
					if err := server.Save(); err != nil {
						t.Fatal(err)
					}
				}
				if err := server.Restart(); err != nil {
					t.Fatal(err)
				}
				if got := count(t, db); got != n {
					t.Errorf("%d rows, want %d", got, n)
				}
			}
			if err := errors.Join(server.Kill(), server.Restore(), server.Restart()); err != nil {
				t.Fatal(err)
			}
			reopened(t, db)
			if got := count(t, db); got != 2 {
				t.Errorf("%d rows in the restored copy, want 2", got)
			}
		})
	}
}

func TestFreezeAndThaw(t *testing.T) {
	for driver, start := range engines() {
		t.Run(driver, func(t *testing.T) {
			t.Parallel()
			server := start(t)
			server.SkipIfExternal(t)
			db := open(t, driver, server.DSN())
			execute(t, db, "CREATE TABLE engine_rows (n int)")
			if err := server.Freeze(); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			if _, err := db.ExecContext(ctx, "DELETE FROM engine_rows"); !engine.IsTimeout(err) {
				t.Errorf("a frozen server: %v, want the deadline", err)
			}
			if err := server.Thaw(); err != nil {
				t.Fatal(err)
			}
			if got := count(t, db); got != 0 {
				t.Errorf("%d rows, want none", got)
			}
		})
	}
}
