package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"
	_ "modernc.org/sqlite"

	"example.com/go-webhookcfg/store/sqlstore"
)

// engine is the database of the service, with all that depends on which one it is. A
// service with one database needs the half of this file that opens it.
type engine struct {
	db    *sql.DB
	store *sqlstore.Store // of the webhooks
	// migrateQueue creates or updates the tables of the queue.
	migrateQueue func(context.Context) error
	// open returns the queue, and the outbox that fills it.
	open  func(*river.Config) (queue, outbox, error)
	close func() error
}

// openEngine opens the database that -store specifies.
func openEngine(ctx context.Context, name string, logger *slog.Logger) (e *engine, err error) {
	kind, where, _ := strings.Cut(name, ":")
	dialect := sqlstore.SQLite()
	switch {
	case where == "":
		err = errors.New("-store: want sqlite:PATH or postgres:DSN")
	case kind == "sqlite":
		e, err = openSQLite(where)
	case kind == "postgres":
		dialect = sqlstore.PostgreSQL()
		if strings.HasPrefix(where, "//") {
			where = name // a complete URL
		}
		e, err = openPostgres(ctx, where)
	default:
		err = fmt.Errorf("-store: unknown engine %q, want sqlite or postgres", kind)
	}
	if err != nil {
		return nil, err
	}
	if e.store, err = sqlstore.New(e.db, dialect, &sqlstore.Options{Logger: logger}); err != nil {
		return nil, errors.Join(err, e.close())
	}
	return e, nil
}

// migrate creates or updates the tables of the store, the queue and the service itself.
func (e *engine) migrate(ctx context.Context) error {
	if err := e.store.Migrate(ctx); err != nil {
		return err
	}
	if err := e.migrateQueue(ctx); err != nil {
		return fmt.Errorf("tables of the queue: %w", err)
	}
	_, err := e.db.ExecContext(ctx, createModules)
	return err
}

func migrateQueue[Tx any](ctx context.Context, driver riverdriver.Driver[Tx]) error {
	migrator, err := rivermigrate.New(driver, nil)
	if err != nil {
		return err
	}
	_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	return err
}

// sqliteSettings make acknowledged changes survive a power failure, and have a second
// process, such as replay, wait for its turn.
const sqliteSettings = "?_txlock=immediate&_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)"

// openSQLite opens a database that is a file of one machine.
func openSQLite(path string) (*engine, error) {
	db, err := sql.Open("sqlite", "file:"+filepath.ToSlash(path)+sqliteSettings)
	if err != nil {
		return nil, err
	}
	// SQLite has one writer at a time. With one connection the parts of this process take
	// turns here, and none of them finds the database locked by another.
	db.SetMaxOpenConns(1)
	driver := riversqlite.New(db)
	return &engine{
		db:           db,
		migrateQueue: func(ctx context.Context) error { return migrateQueue(ctx, driver) },
		open: func(cfg *river.Config) (queue, outbox, error) {
			client, err := river.NewClient(driver, cfg)
			return client, sqliteOutbox{db, client}, err
		},
		close: db.Close,
	}, nil
}

// sqliteOutbox is an [outbox] in SQLite.
type sqliteOutbox struct {
	db     *sql.DB
	client *river.Client[*sql.Tx]
}

func (o sqliteOutbox) update(ctx context.Context, m module) (version int64, err error) {
	tx, err := o.db.BeginTx(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer func() { _ = tx.Rollback() }() // no effect after a commit
	if err := tx.QueryRowContext(ctx, updateModule, m.client, m.id, m.state).Scan(&version); err != nil {
		return 0, err
	}
	if _, err := o.client.InsertTx(ctx, tx, m.changed(version), nil); err != nil {
		return 0, err
	}
	return version, tx.Commit()
}

// maxConns is the number of connections of a process to PostgreSQL. A delivery holds none
// while it is under way.
const maxConns = 16

// openPostgres opens a database that any number of processes may share.
func openPostgres(ctx context.Context, dsn string) (*engine, error) {
	cfg, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, errors.New("-store: data source name rejected by pgx") // without the cause, which may hold a password
	}
	cfg.MaxConns = maxConns
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, err
	}
	db := stdlib.OpenDBFromPool(pool)
	driver := riverpgxv5.New(pool)
	return &engine{
		db:           db,
		migrateQueue: func(ctx context.Context) error { return migrateQueue(ctx, driver) },
		open: func(cfg *river.Config) (queue, outbox, error) {
			client, err := river.NewClient(driver, cfg)
			return client, postgresOutbox{pool, client}, err
		},
		close: func() error {
			err := db.Close()
			pool.Close()
			return err
		},
	}, nil
}

// postgresOutbox is an [outbox] in PostgreSQL.
type postgresOutbox struct {
	pool   *pgxpool.Pool
	client *river.Client[pgx.Tx]
}

func (o postgresOutbox) update(ctx context.Context, m module) (version int64, err error) {
	err = pgx.BeginFunc(ctx, o.pool, func(tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, updateModule, m.client, m.id, m.state).Scan(&version); err != nil {
			return err
		}
		_, err := o.client.InsertTx(ctx, tx, m.changed(version), nil)
		return err
	})
	return version, err
}
