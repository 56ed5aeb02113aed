package main

import (
	"context"
	"database/sql"
	"path/filepath"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	_ "modernc.org/sqlite"
)

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
