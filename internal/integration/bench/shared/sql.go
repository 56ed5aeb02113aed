package main

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"example.com/go-webhookcfg/store/sqlstore"
	"example.com/go-webhookcfg/webhookcfg"
)

// sqlDatabase is a server, or a file, that speaks SQL.
type sqlDatabase struct {
	driver, dsn string
	dialect     sqlstore.Dialect
	admin       *sql.DB
}

// newSQLDatabase removes the tables that are there, as it does in the end.
func newSQLDatabase(t testing.TB, driver, dsn string, dialect sqlstore.Dialect) *sqlDatabase {
	t.Helper()
	d := &sqlDatabase{driver: driver, dsn: dsn, dialect: dialect}
	d.admin = d.connect(t)
	d.drop(t)
	t.Cleanup(func() { d.drop(t) })
	return d
}

func (d *sqlDatabase) drop(t testing.TB) {
	for _, prefix := range []string{oursPrefix, barePrefix} {
		for _, table := range []string{"schema", "client", "override"} {
			if _, err := d.admin.Exec("DROP TABLE IF EXISTS " + prefix + table); err != nil {
				t.Error(err)
			}
		}
	}
}

// connect returns a handle that keeps a connection for each of those who use it.
func (d *sqlDatabase) connect(t testing.TB) *sql.DB {
	t.Helper()
	db, err := sql.Open(d.driver, d.dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(many)
	db.SetMaxIdleConns(many)
	return db
}

func (d *sqlDatabase) open(t testing.TB, prefix string) webhookcfg.Store {
	t.Helper()
	st, err := sqlstore.New(d.connect(t), d.dialect, &sqlstore.Options{Prefix: prefix})
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if feed, err := st.WithFeed(); err == nil {
		return feed
	}
	return st
}

func (d *sqlDatabase) bare(t testing.TB, prefix string) client {
	t.Helper()
	d.open(t, prefix) // makes the tables
	r, err := newReplay(t.Context(), d.connect(t), d.dialect, prefix)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// fill writes the rows of overrides in the generation of clients who are new.
func (d *sqlDatabase) fill(t testing.TB, prefix string, n int, nth func(n int) webhookcfg.Change) error {
	tx, err := d.admin.BeginTx(t.Context(), nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	const atOnce = 500
	for first := 0; first < n; first += atOnce {
		var args []any
		for i := first; i < min(first+atOnce, n); i++ {
			c := nth(i)
			args = append(args, []byte(c.Client), []byte(c.Scope.Entity()), []byte(c.URL.Reveal()))
		}
		if _, err := tx.ExecContext(t.Context(), d.insert(prefix, len(args)/3), args...); err != nil {
			return err
		}
	}
	return tx.Commit()
}

func (d *sqlDatabase) insert(prefix string, rows int) string {
	values := make([]string, rows)
	for i := range values {
		values[i] = fmt.Sprintf("(?, 0, ?, ?, %d)", since.Unix())
		if d.driver == "pgx" {
			values[i] = fmt.Sprintf("($%d, 0, $%d, $%d, %d)", 3*i+1, 3*i+2, 3*i+3, since.Unix())
		}
	}
	return "INSERT INTO " + prefix + "override (client, gen, entity, url, since) VALUES " + strings.Join(values, ", ")
}
