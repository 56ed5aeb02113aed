package dialect

import (
	"context"
	"database/sql"
	"errors"
	"regexp"
	"strconv"
	"strings"
)

var created = regexp.MustCompile(`^CREATE TABLE IF NOT EXISTS ([a-z0-9_]+)`)

// Created returns the names of the tables that statements of a schema create.
func Created(statements []string) (tables []string) {
	for _, s := range statements {
		if found := created.FindStringSubmatch(s); found != nil {
			tables = append(tables, found[1])
		}
	}
	return tables
}

// Present is a condition for the end of a WHERE clause. It costs next to nothing. Its statement
// fails if one of the tables is missing. In PostgreSQL, the condition is false if a table has no
// primary key: a restore creates the keys last, and without them nothing keeps a row from being
// there twice.
func (e Engine) Present(tables []string) string {
	var all strings.Builder
	for _, table := range tables {
		all.WriteString(" AND (SELECT COUNT(*) FROM " + table + " WHERE 1 = 0) = 0")
	}
	if e.hasLateKeys {
		all.WriteString(" AND (SELECT COUNT(*) FROM pg_index WHERE indisprimary AND indrelid IN (")
		for n, table := range tables {
			if n > 0 {
				all.WriteString(", ")
			}
			all.WriteString("'" + table + "'::regclass")
		}
		all.WriteString(")) = " + strconv.Itoa(len(tables)))
	}
	return all.String()
}

// WithoutKey returns those of the tables that have no primary key. Ask if [Engine.Present] was
// false.
func (e Engine) WithoutKey(ctx context.Context, db *sql.DB, tables []string) (keyless []string, err error) {
	if !e.hasLateKeys {
		return nil, nil
	}
	for _, table := range tables {
		var n int
		if err := db.QueryRowContext(ctx, "SELECT COUNT(*) FROM pg_index WHERE indisprimary AND indrelid = to_regclass($1)", table).Scan(&n); err != nil {
			return nil, err
		}
		if n == 0 {
			keyless = append(keyless, table)
		}
	}
	return keyless, nil
}

// RestoreKeys says what to do about tables without a primary key.
func RestoreKeys(keyless []string) string {
	return strings.Join(keyless, ", ") + ": wait if a restore is under way; if it has ended, restore the whole backup into an empty database, since pg_restore -t leaves out keys, indexes, sequences and triggers"
}

// Denied reports whether a statement failed because the user lacks a privilege for a table.
func (e Engine) Denied(cause error) bool {
	var state interface{ SQLState() string }
	return e.denied != "" && (errors.As(cause, &state) && state.SQLState() == e.denied || strings.Contains(cause.Error(), e.denied))
}

// Missing returns those of the tables that the database doesn't have. Ask after a statement has
// failed, with the cause.
func (e Engine) Missing(ctx context.Context, db *sql.DB, tables []string, cause error) (missing []string, err error) {
	if !strings.Contains(cause.Error(), e.noTable) {
		return nil, nil
	}
	s := e.Compile("SELECT COUNT(*) FROM "+e.existing, DefaultPrefix)
	for _, table := range tables {
		var n int
		if err := db.QueryRowContext(ctx, s.Text, s.Args(Values{"table": table})...).Scan(&n); err != nil {
			return nil, err
		}
		if n == 0 {
			missing = append(missing, table)
		}
	}
	return missing, nil
}
