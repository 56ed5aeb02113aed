package main

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
)

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
