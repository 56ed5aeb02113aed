package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/riverqueue/river/rivertype"

	"example.com/go-webhookcfg/store/sqlstore"
)

// engine is the database of the service, with all that depends on which one it is. A
// service with one database needs sqlite.go or postgres.go, and not this file.
type engine struct {
	db    *sql.DB
	store *sqlstore.Store // of the webhooks
	// migrateQueue creates or updates the tables of the queue.
	migrateQueue func(context.Context) error
	// open returns the queue, and the outbox that fills it.
	open  func(*river.Config) (queue, outbox, error)
	close func() error
}

// queue is what the service uses of a [river.Client] besides its transactions.
type queue interface {
	Start(ctx context.Context) error
	Stop(ctx context.Context) error
	JobList(ctx context.Context, params *river.JobListParams) (*river.JobListResult, error)
	JobRetry(ctx context.Context, id int64) (*rivertype.JobRow, error)
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

// counts are the numbers of notifications in the queue.
type counts struct {
	Waiting  int64 `json:"waiting"` // for a worker, their turn or the next attempt
	UnderWay int64 `json:"under_way"`
	GivenUp  int64 `json:"given_up"` // and kept, for replay
}

func (e *engine) counts(ctx context.Context) (c counts, err error) {
	// Completed notifications are left out, as counting them would read them all.
	rows, err := e.db.QueryContext(ctx, `SELECT state, count(*) FROM river_job
WHERE state IN ('available', 'retryable', 'scheduled', 'running', 'cancelled', 'discarded') GROUP BY state`)
	if err != nil {
		return c, fmt.Errorf("count the notifications: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var state rivertype.JobState
		var n int64
		if err := rows.Scan(&state, &n); err != nil {
			return c, err
		}
		switch state {
		case rivertype.JobStateRunning:
			c.UnderWay += n
		case rivertype.JobStateCancelled, rivertype.JobStateDiscarded:
			c.GivenUp += n
		default:
			c.Waiting += n
		}
	}
	return c, rows.Err()
}
