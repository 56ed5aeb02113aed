package main

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"sync/atomic"

	"example.com/go-webhookcfg/webhookcfg"
	_ "modernc.org/sqlite"
)

const (
	sqliteSettings = "?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)"
	sqliteSchema   = `CREATE TABLE webhooks (client TEXT, entity TEXT, url TEXT, since INTEGER,
		PRIMARY KEY (client, entity)) WITHOUT ROWID`
	sqliteSet = `INSERT INTO webhooks VALUES (?, ?, ?, ?)
		ON CONFLICT DO UPDATE SET url = excluded.url, since = excluded.since`
	sqliteGet = `SELECT url FROM webhooks WHERE client = ? AND entity = ?`
)

// sqlite is a store on one connection: SQLite has one writer at a time.
type sqlite struct {
	db      *sql.DB
	set     *sql.Stmt
	commits atomic.Int64
}

// openSQLite opens a SQLite store with a write-ahead log, which costs one sync
// for each transaction.
func openSQLite(dir string) (*contender, error) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "sqlite")+sqliteSettings)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	if _, err := db.Exec(sqliteSchema); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	set, err := db.Prepare(sqliteSet)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	s := &sqlite{db: db, set: set}
	return &contender{
		ways: []way{
			{"SQLite, a transaction each", s.setOne, s.commits.Load},
		},
		load: func(n int) error { return commitAll(s.setAll, n) },
		url: func(client, entity string) (url string, err error) {
			err = db.QueryRow(sqliteGet, client, entity).Scan(&url)
			return url, err
		},
		close: func() error { return errors.Join(set.Close(), db.Close()) },
	}, nil
}

func (s *sqlite) setOne(_ context.Context, c webhookcfg.Change) error {
	s.commits.Add(1)
	return insert(s.set, c)
}

func (s *sqlite) setAll(changes []webhookcfg.Change) error {
	tx, err := s.db.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback()
	set := tx.Stmt(s.set)
	for _, c := range changes {
		if err := insert(set, c); err != nil {
			return err
		}
	}
	s.commits.Add(1)
	return tx.Commit()
}

func insert(set *sql.Stmt, c webhookcfg.Change) error {
	_, err := set.Exec(c.Client, c.Scope.Entity(), c.URL.Reveal(), c.Time.Unix())
	return err
}
