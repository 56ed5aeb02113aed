package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

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

// database is the service's database, with everything that depends on which database it is.
// If you only support one, you need half of this file.
type database struct {
	*sql.DB
	webhooks *sqlstore.Store
	// migrateQueue creates or updates the tables of the queue.
	migrateQueue func(context.Context) error
	openQueue    func(*river.Config) (queue, error)
	close        func() error
}

// openDatabase opens the database that -store specifies.
func openDatabase(ctx context.Context, name string, logger *slog.Logger) (d *database, err error) {
	var dialect sqlstore.Dialect
	if path, ok := strings.CutPrefix(name, "sqlite:"); ok && path != "" {
		dialect = sqlstore.SQLite()
		d, err = openSQLite(path)
	} else if strings.HasPrefix(name, "postgres://") {
		dialect = sqlstore.PostgreSQL()
		d, err = openPostgreSQL(ctx, name)
	} else {
		err = errors.New("-store: want sqlite:PATH or postgres://USER@HOST/DATABASE")
	}
	if err != nil {
		return nil, err
	}
	if d.webhooks, err = sqlstore.New(d.DB, dialect, &sqlstore.Options{Logger: logger}); err != nil {
		return nil, errors.Join(err, d.close())
	}
	return d, nil
}

// ready returns an error that says what to do if the database can't be used.
func (d *database) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if _, err := d.revision(ctx); err != nil {
		return fmt.Errorf("%w: if the tables are missing, run the command migrate first", err)
	}
	return nil
}

// migrate creates or updates the tables of the webhooks, the queue, the modules and the
// clients' secrets.
func (d *database) migrate(ctx context.Context) error {
	if err := d.webhooks.Migrate(ctx); err != nil {
		return err
	}
	if err := d.migrateQueue(ctx); err != nil {
		return fmt.Errorf("tables of the queue: %w", err)
	}
	for _, statement := range []string{createClientIndex, dropArgsIndex, dropMetadataIndex, createModules, createSecrets, createRevision, insertRevision} {
		if _, err := d.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// warn logs anything that you should change about the database.
func (d *database) warn(ctx context.Context, logger *slog.Logger) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	warnings, err := d.webhooks.Check(ctx)
	if err != nil {
		logger.Warn("can't check the database", "error", err)
	}
	for _, warning := range warnings {
		logger.Warn("the database needs attention", "warning", warning)
	}
}

// With the first index, the database finds a client's notifications among everybody's. River
// creates the other two in PostgreSQL. They take up half of the queue's space, and nothing
// here uses them.
const (
	createClientIndex = `CREATE INDEX IF NOT EXISTS notification_client ON river_job (state, (args ->> 'client'), (args ->> 'entity'))`
	dropArgsIndex     = `DROP INDEX IF EXISTS river_job_args_index`
	dropMetadataIndex = `DROP INDEX IF EXISTS river_job_metadata_index`
)

// addQueue adds the queue that belongs to a driver.
func addQueue[Tx any](d *database, driver riverdriver.Driver[Tx], with func(*river.Client[Tx]) queue) *database {
	d.migrateQueue = func(ctx context.Context) error {
		migrator, err := rivermigrate.New(driver, nil)
		if err != nil {
			return err
		}
		_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
		return err
	}
	d.openQueue = func(cfg *river.Config) (queue, error) {
		client, err := river.NewClient(driver, cfg)
		return with(client), err
	}
	return d
}

// With sqliteSettings, acknowledged changes survive a power failure, and a second process,
// such as replay, waits for its turn.
const sqliteSettings = "?_txlock=immediate&_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=secure_delete(ON)"

// openSQLite opens a database in a file, for one machine.
func openSQLite(path string) (*database, error) {
	db, err := sql.Open("sqlite", "file:"+filepath.ToSlash(path)+sqliteSettings)
	if err != nil {
		return nil, err
	}
	// SQLite has one writer at a time. With one connection, the parts of this process take
	// turns here instead of finding the database locked.
	db.SetMaxOpenConns(1)
	d := &database{DB: db, close: db.Close}
	return addQueue(d, riversqlite.New(db), func(c *river.Client[*sql.Tx]) queue { return sqliteQueue{c, db} }), nil
}

// sqliteQueue is a [queue] in SQLite.
type sqliteQueue struct {
	*river.Client[*sql.Tx]
	db *sql.DB
}

func (q sqliteQueue) update(ctx context.Context, m module, backlog int) (version int64, err error) {
	tx, err := q.db.BeginTx(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer func() { _ = tx.Rollback() }() // no effect after a commit
	if err := tx.QueryRowContext(ctx, updateModule, m.client, m.id, m.state).Scan(&version); err != nil {
		return 0, err
	}
	var waiting int
	if err := tx.QueryRowContext(ctx, countWaiting, m.client, backlog).Scan(&waiting); err != nil {
		return 0, err
	}
	if _, err := q.InsertTx(ctx, tx, m.changed(version), &river.InsertOpts{Queue: queueOf(m.client, waiting, backlog)}); err != nil {
		return 0, err
	}
	return version, tx.Commit()
}

// maxConns is how many connections to PostgreSQL a process can have. A delivery doesn't hold
// one while it's under way.
const maxConns = 16

// openPostgreSQL opens a database that several processes can share.
func openPostgreSQL(ctx context.Context, url string) (*database, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, errors.New("-store: URL rejected by pgx") // hides the cause, which may contain a password
	}
	cfg.MaxConns = maxConns
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, err
	}
	db := stdlib.OpenDBFromPool(pool)
	db.SetMaxOpenConns(maxConns)
	d := &database{DB: db, close: func() error {
		defer pool.Close()
		return db.Close()
	}}
	return addQueue(d, riverpgxv5.New(pool), func(c *river.Client[pgx.Tx]) queue { return postgresQueue{c, pool} }), nil
}

// postgresQueue is a [queue] in PostgreSQL.
type postgresQueue struct {
	*river.Client[pgx.Tx]
	pool *pgxpool.Pool
}

func (q postgresQueue) update(ctx context.Context, m module, backlog int) (version int64, err error) {
	err = pgx.BeginFunc(ctx, q.pool, func(tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, updateModule, m.client, m.id, m.state).Scan(&version); err != nil {
			return err
		}
		var waiting int
		if err := tx.QueryRow(ctx, countWaiting, m.client, backlog).Scan(&waiting); err != nil {
			return err
		}
		_, err := q.InsertTx(ctx, tx, m.changed(version), &river.InsertOpts{Queue: queueOf(m.client, waiting, backlog)})
		return err
	})
	return version, err
}
