package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"example.com/go-webhookcfg/examples/internal/dsn"
	"example.com/go-webhookcfg/store/sqlstore"
	"example.com/go-webhookcfg/webhookcfg/deliver/outbox"
)

// database is the service's database, with everything that depends on which database it is.
// If you only support one, you need half of this file.
type database struct {
	*sql.DB
	dialect  sqlstore.Dialect
	webhooks *sqlstore.Store
	queue    *outbox.Outbox // without a sender, for commands
	file     sqliteFile     // the zero value with PostgreSQL
}

// openDatabase opens the database that -store specifies. It creates the file of an SQLite database
// only if its tables are created too, so that no other command, perhaps of another user, leaves an
// empty file that the service can't write to.
func openDatabase(name string, isCreated bool, logger *slog.Logger) (d *database, err error) {
	d = new(database)
	if path, ok := strings.CutPrefix(name, "sqlite:"); ok && path != "" {
		if _, err := os.Stat(path); isCreated && errors.Is(err, fs.ErrNotExist) {
			logger.Warn("creates the database file: if there was one before, stop the service, and put it back or mount its directory", "file", path)
		}
		d.dialect = sqlstore.SQLite()
		d.DB, d.file, err = openSQLite(path, isCreated)
	} else if strings.HasPrefix(name, "postgres://") {
		d.dialect = sqlstore.PostgreSQL()
		d.DB, err = openPostgreSQL(name)
	} else {
		err = errors.New("-store: want sqlite:PATH or postgres://USER@HOST/DATABASE")
	}
	if err != nil {
		return nil, err
	}
	if d.webhooks, err = sqlstore.New(d.DB, d.dialect, &sqlstore.Options{Logger: logger}); err == nil {
		d.queue, err = outbox.New(d.DB, d.dialect, nil, nil)
	}
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// migrate creates or updates the tables of the webhooks, the queue, the modules and the
// clients' secrets. Those of the queue are the last ones. Once they're there, a table of modules or
// secrets that isn't was lost, and an empty one would only hide that: every client would get a 401, or a
// 404 for each of its modules.
func (d *database) migrate(ctx context.Context) error {
	if err := d.checkLost(ctx); err != nil {
		return err
	}
	if err := d.webhooks.Migrate(ctx); err != nil {
		return err
	}
	if _, err := d.queue.Check(ctx); errors.Is(err, outbox.ErrNoTables) {
		if err := d.createTables(ctx); err != nil {
			return err
		}
	}
	return d.queue.Migrate(ctx)
}

// checkLost returns an error if all tables of the queue or of the webhooks were lost. It looks at those
// that are created or filled last first, since another process may be creating them.
func (d *database) checkLost(ctx context.Context) error {
	_, hasSecrets, err := d.look(ctx, "secrets")
	if err != nil {
		return err
	}
	_, err = d.queue.Check(ctx)
	hasQueue := !errors.Is(err, outbox.ErrNoTables)
	hasWebhooks := false
	for _, table := range []string{"wh_schema", "wh_client", "wh_override"} {
		exists, _, err := d.look(ctx, table)
		if err != nil {
			return err
		}
		hasWebhooks = hasWebhooks || exists
	}
	const remedy = "restore them all from the same backup, with their keys, indexes, sequences and triggers; only if you can do without what was in them, run the statements in "
	kind := strings.ToLower(d.dialect.String())
	switch {
	case hasSecrets && !hasQueue:
		return fmt.Errorf("clients have secrets, but the queue's tables wh_outbox_* are missing: %swebhookcfg/deliver/outbox/schema/%s.sql", remedy, kind)
	case hasQueue && !hasWebhooks:
		return fmt.Errorf("the queue's tables are there, but those of the webhooks, wh_schema, wh_client, wh_override and wh_delivery, are missing: %sstore/sqlstore/schema/%s", remedy, kind)
	}
	return nil
}

// look reports whether a table exists, and whether it has a row.
func (d *database) look(ctx context.Context, table string) (exists, hasRow bool, err error) {
	var n int
	switch err := d.QueryRowContext(ctx, "SELECT 1 FROM "+table+" LIMIT 1").Scan(&n); {
	case says(err, "42P01", "no such table"):
		return false, false, nil
	case errors.Is(err, sql.ErrNoRows):
		return true, false, nil
	default:
		return err == nil, err == nil, err
	}
}

// takeTurns lets no other transaction continue that starts with it.
const takeTurns = "UPDATE wh_schema SET version = version"

// createTables creates the tables of modules and secrets. Processes take turns, because PostgreSQL refuses
// to create a table that another transaction is about to create.
func (d *database) createTables(ctx context.Context) error {
	tx, err := d.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // no effect after a commit
	for _, statement := range []string{takeTurns, createModules, createSecrets, indexRetired} {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// ready returns an error that says what to do if the database can't be used. It logs anything
// that you should change about it.
func (d *database) ready(ctx context.Context, logger *slog.Logger) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if _, err := d.queue.Check(ctx); errors.Is(err, outbox.ErrNoTables) {
		return fmt.Errorf("%w: wait if a backup is being restored, otherwise run the command migrate first", err)
	} else if err != nil {
		return err
	}
	warnings, err := d.webhooks.Check(ctx)
	for _, warning := range warnings { // the queue has the same ones
		logger.Warn("the database needs attention", "warning", warning)
	}
	if err != nil {
		return err
	}
	return d.Healthy(ctx)
}

// ownTables are those of modules and secrets. Without its key, a row could be there twice, or none could be
// added.
var ownTables = []struct{ name, create, columns, key string }{
	{"modules", createModules, "client, id, state, version", "client, id"},
	{"secrets", createSecrets + "; " + indexRetired, "client, name, hash", "client, name"},
}

// Healthy returns nil if the tables of modules and secrets are there, with their keys, and the files of SQLite
// are where they were. The webhooks and the queue look at their own tables.
func (d *database) Healthy(ctx context.Context) error {
	if err := d.file.inPlace(); err != nil {
		return err
	}
	for _, t := range ownTables {
		// It only makes a plan, which needs the key, and the privilege to insert.
		plan := "EXPLAIN INSERT INTO " + t.name + " (" + t.columns + ") SELECT " + t.columns + " FROM " + t.name + " WHERE 1 = 0 ON CONFLICT (" + t.key + ") DO NOTHING"
		_, err := d.ExecContext(ctx, plan)
		switch {
		case says(err, "42P01", "no such table"):
			return fmt.Errorf("the table %s is missing: %w: restore it from a backup, with its key and index, which pg_restore -t leaves out; only if you can do without what was in it, run %s",
				t.name, err, strings.Join(strings.Fields(t.create), " "))
		case says(err, "42P10", "ON CONFLICT clause does not match"):
			return fmt.Errorf("the table %s has lost its primary key (%s): %w: restore it from a backup, or, in PostgreSQL, add it with ALTER TABLE", t.name, t.key, err)
		case err != nil:
			return fmt.Errorf("the table %s can't be used: %w", t.name, err)
		}
	}
	return d.file.hasLog(ctx, d.DB)
}

// says reports whether an error is PostgreSQL's with the code, or SQLite's with the text.
func says(err error, code, text string) bool {
	state, ok := errors.AsType[*pgconn.PgError](err)
	return ok && state.Code == code || err != nil && strings.Contains(err.Error(), text)
}

// change runs a statement, and returns how many rows it changed.
func (d *database) change(ctx context.Context, statement string, args ...any) (rows int64, err error) {
	result, err := d.ExecContext(ctx, statement, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// With sqliteSettings, acknowledged changes survive a power failure, and a second process,
// such as replay, waits for its turn.
const sqliteSettings = "_txlock=immediate&_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=secure_delete(ON)"

// sqliteFile is the file of an SQLite database as it was when it was opened.
type sqliteFile struct {
	path string
	info os.FileInfo
}

// inPlace returns an error if the path no longer leads to the file. SQLite then goes on with the file that it
// has open, and every change succeeds, but whoever opens the path next doesn't see them. It doesn't open the file:
// closing it again would release SQLite's locks.
func (f sqliteFile) inPlace() error {
	if f.path == "" {
		return nil
	}
	info, err := os.Stat(f.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err == nil && os.SameFile(info, f.info) {
		return nil
	}
	return fmt.Errorf("%s isn't the database file that the service has open, which was moved, removed or replaced: stop the service, and before you start it, put the file back, with its -wal file next to it; "+
		"what the service did since is only in these two, so if they were removed, it's lost, and you need a backup: "+
		"before you put that there, remove the files next to it that end in -wal, -shm and -journal, which would damage it", f.path)
}

// hasLog returns an error if SQLite's log of changes or the index of that was moved or removed. They're next to the
// file as long as the connection is open. SQLite follows a symbolic link and uses the directory of the file itself, so
// it's asked.
func (f sqliteFile) hasLog(ctx context.Context, db *sql.DB) error {
	if f.path == "" {
		return nil
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	var file string
	const inUse = "SELECT file FROM pragma_database_list, pragma_journal_mode WHERE name = 'main' AND journal_mode = 'wal'"
	if err := conn.QueryRowContext(ctx, inUse).Scan(&file); errors.Is(err, sql.ErrNoRows) {
		return nil
	} else if err != nil {
		return err
	}
	for _, end := range []string{"-wal", "-shm"} {
		if _, err := os.Stat(file + end); errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s%s, which the service has open, was moved or removed: stop the service before anything else opens the database, and don't kill it, since it writes its changes into %[1]s when it stops; "+
				"if a backup was put there, put it there again after that, and first remove the files next to it that end in -wal, -shm and -journal, which would damage it", file, end)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// openSQLite opens a database in a file, for one machine.
func openSQLite(path string, isCreated bool) (*sql.DB, sqliteFile, error) {
	opened := sqliteFile{path: path}
	mode := os.O_RDWR
	if isCreated {
		mode |= os.O_CREATE
	}
	file, err := os.OpenFile(path, mode, 0o600) // SQLite would create a file that other users can read
	if err == nil {
		opened.info, err = file.Stat()
		err = errors.Join(err, file.Close())
	}
	if errors.Is(err, fs.ErrNotExist) && !isCreated {
		err = fmt.Errorf("%w: if the path is right, run the command migrate first, as the user of the service, or start the service with -migrate", err)
	}
	if err != nil {
		return nil, opened, err
	}
	name, err := dsn.SQLite(path, sqliteSettings)
	if err != nil {
		return nil, opened, err
	}
	db, err := sql.Open("sqlite", name)
	if err != nil {
		return nil, opened, err
	}
	// SQLite has one writer at a time. With one connection, the parts of this process take
	// turns here instead of finding the database locked.
	db.SetMaxOpenConns(1)
	return db, opened, nil
}

// maxConns is how many connections to PostgreSQL a process can have. A delivery doesn't hold
// one while it's under way.
const maxConns = 16

// openPostgreSQL opens a database that several processes can share.
func openPostgreSQL(url string) (*sql.DB, error) {
	if err := dsn.CheckURL(url); err != nil {
		return nil, fmt.Errorf("-store: %w", err)
	}
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, dsn.Rejected("-store: URL rejected by pgx", "", err)
	}
	db := stdlib.OpenDB(*cfg)
	db.SetMaxOpenConns(maxConns)
	db.SetMaxIdleConns(maxConns)
	return db, nil
}
