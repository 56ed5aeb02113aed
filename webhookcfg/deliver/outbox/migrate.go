package outbox

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"slices"
	"strings"

	"example.com/go-webhookcfg/internal/dialect"
	"example.com/go-webhookcfg/store/sqlstore"
)

//go:embed schema
var schemas embed.FS

const schemaVersion = 1

var (
	// ErrNewerSchema means that a later version of this package has migrated the tables.
	// Start that version, or a later one.
	ErrNewerSchema = errors.New("outbox: schema of a later version of this package")
	// ErrNoTables means that the tables are missing, or were made for another dialect. Call
	// [Outbox.Migrate], or choose another prefix.
	ErrNoTables = errors.New("outbox: the tables are missing")
)

// Schema returns the statements that [Outbox.Migrate] runs, for your own migration tool. You
// can run them repeatedly. Pass the prefix of your [Options]. With the default prefix, your
// tool can use the files in the directory schema instead.
func Schema(d sqlstore.Dialect, prefix string) ([]string, error) {
	spec, err := engineOf(d)
	if err != nil {
		return nil, err
	}
	if prefix, err = tablePrefix(prefix); err != nil {
		return nil, err
	}
	return spec.schema(prefix)
}

func (e *engine) schema(prefix string) ([]string, error) {
	text, err := schemas.ReadFile(e.file)
	return dialect.Schema(string(text), prefix), err
}

// Migrate creates the tables. If they're there, it changes nothing. Any number of processes
// can call it at the same time. After an error you can call it again.
func (o *Outbox) Migrate(ctx context.Context) error {
	err := o.tables.check(ctx)
	if err == nil || errors.Is(err, ErrNewerSchema) {
		return err
	}
	if err := o.tables.migrate(ctx); err != nil {
		return fmt.Errorf("outbox: migrate: %w", err)
	}
	return o.tables.check(ctx)
}

// Check returns a warning for each setting of the database, its connections or their pool that
// could lose notifications, delay those of a process that dies, or make calls fail under load. Each
// warning says what to change. They're those of [sqlstore.Store.Check], and on MariaDB one more,
// for transactions of frozen processes. Call Check after Migrate, and log the warnings.
//
// Check returns an error if the outbox can't work with the tables: one that wraps [ErrNoTables] or
// [ErrNewerSchema], or that of the driver.
func (o *Outbox) Check(ctx context.Context) (warnings []string, err error) {
	if err := o.tables.check(ctx); err != nil {
		return nil, err
	}
	return o.tables.engine.Advise(ctx, o.tables.db, o.tables.engine.advices...)
}

func (t *tables) migrate(ctx context.Context) error {
	statements, err := t.engine.schema(t.prefix)
	if err != nil {
		return err
	}
	if t.engine.lock == "" {
		for _, s := range statements {
			if _, err := t.db.ExecContext(ctx, s); err != nil {
				return err
			}
		}
		return nil
	}
	return t.transaction(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, t.compile(t.engine.lock).Text); err != nil {
			return err
		}
		for _, s := range statements {
			if _, err := tx.ExecContext(ctx, s); err != nil {
				return err
			}
		}
		return nil
	})
}

// isMissing reports whether an error says that a table is missing. Drivers have no common way
// to say so, but all put it into the text, as a code or in English.
func isMissing(err error) bool {
	text := err.Error()
	return slices.ContainsFunc([]string{"42P01", "42S02", "no such table", "does not exist"}, func(code string) bool {
		return strings.Contains(text, code)
	})
}

func (t *tables) check(ctx context.Context) error {
	version, name := 0, ""
	s := t.compile(`SELECT version, dialect FROM {schema} WHERE id = 1`)
	err := query(ctx, t.db, s, nil, func(rows *sql.Rows) error { return rows.Scan(&version, &name) })
	switch {
	case err != nil && isMissing(err):
		return fmt.Errorf("%w: call Migrate: %w", ErrNoTables, err)
	case err != nil:
		return fmt.Errorf("outbox: check: %w", err)
	case version > schemaVersion:
		return fmt.Errorf("%w: the tables have version %d, and this process knows up to %d", ErrNewerSchema, version, schemaVersion)
	case version < schemaVersion:
		return fmt.Errorf("%w: call Migrate", ErrNoTables)
	case name != t.engine.Name:
		return fmt.Errorf("%w: those with this prefix were made for %s: pass that dialect to New, or choose another Options.Prefix", ErrNoTables, name)
	}
	return nil
}
