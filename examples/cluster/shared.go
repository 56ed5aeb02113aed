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

	"example.com/go-webhookcfg/store/etcdstore"
	"example.com/go-webhookcfg/store/sqlstore"
	"example.com/go-webhookcfg/webhookcfg"
	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	clientv3 "go.etcd.io/etcd/client/v3"
	_ "modernc.org/sqlite"
)

// shared is a store that all replicas have in common.
type shared struct {
	// store is what -store names; a sender's copy finds out by itself what the store
	// can tell of changes.
	store   webhookcfg.Store
	migrate func(context.Context) error
	// sweepOnce removes some of what changes of all entities left behind.
	sweepOnce func(context.Context) error
	close     func() error
}

// open opens what -store names; it does no I/O yet.
func open(name string, logger *slog.Logger) (*shared, error) {
	engine, where, ok := strings.Cut(name, ":")
	if !ok || where == "" {
		return nil, errors.New("-store is none of sqlite:PATH, postgres:DSN, mysql:DSN and etcd:ENDPOINTS")
	}
	options := &sqlstore.Options{Logger: logger}
	switch engine {
	case "sqlite":
		return openSQL("sqlite", "file:"+filepath.ToSlash(where)+sqliteSettings, sqlstore.SQLite(), options)
	case "postgres":
		if strings.HasPrefix(where, "//") {
			where = name // a URL, whole
		}
		return openSQL("pgx", where, sqlstore.PostgreSQL(), options)
	case "mysql":
		return openSQL("mysql", where, sqlstore.MySQL(), options)
	case "etcd":
		return openEtcd(strings.Split(where, ","))
	}
	return nil, fmt.Errorf("-store: there is no engine %q", engine)
}

// sqliteSettings make an answered change survive a power failure, and processes
// wait for each other.
const sqliteSettings = "?_txlock=immediate&_pragma=busy_timeout(250)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)"

func openSQL(driver, dsn string, dialect sqlstore.Dialect, options *sqlstore.Options) (*shared, error) {
	db, err := sql.Open(driver, dsn)
	if err != nil {
		return nil, fmt.Errorf("-store: the %s driver refuses the data source name", driver) // which may hold a password
	}
	db.SetMaxOpenConns(16)
	st, err := sqlstore.New(db, dialect, options)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	opened := &shared{store: st, migrate: st.Migrate, close: db.Close}
	opened.sweepOnce = func(ctx context.Context) error {
		_, err := st.Sweep(ctx, sweepLimit)
		return err
	}
	if feed, err := st.WithFeed(); err == nil {
		opened.store = feed // cheaper to follow; MySQL has none
	}
	return opened, nil
}

func openEtcd(endpoints []string) (*shared, error) {
	client, err := clientv3.New(clientv3.Config{
		Endpoints:            endpoints,
		DialTimeout:          5 * time.Second,
		DialKeepAliveTime:    5 * time.Second,
		DialKeepAliveTimeout: 2 * time.Second,
	})
	if err != nil {
		return nil, fmt.Errorf("-store: %w", err)
	}
	st, err := etcdstore.New(client, nil)
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return &shared{
		store:   st,
		migrate: func(context.Context) error { return nil }, // there is nothing to make
		sweepOnce: func(ctx context.Context) error {
			_, err := st.Sweep(ctx, sweepLimit)
			return err
		},
		close: func() error { return errors.Join(st.Close(), client.Close()) },
	}, nil
}

const (
	sweepLimit = 1000
	sweepEvery = time.Minute
)

// sweep sweeps now and then, as one of many replicas, until ctx ends.
func (s *shared) sweep(ctx context.Context, logger *slog.Logger) {
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if err := s.sweepOnce(ctx); err != nil && ctx.Err() == nil {
			logger.Warn("sweep", "error", err)
		}
	}
}
