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

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	clientv3 "go.etcd.io/etcd/client/v3"
	_ "modernc.org/sqlite"

	"example.com/go-webhookcfg/store/etcdstore"
	"example.com/go-webhookcfg/store/sqlstore"
	"example.com/go-webhookcfg/webhookcfg"
)

// shared is a store shared by all replicas.
type shared struct {
	// store is the store given by -store. A sender's copy detects by itself how the store
	// reports changes.
	store   webhookcfg.Store
	migrate func(context.Context) error
	// sweep deletes the overrides dropped by changes of all entities, from time to time, until
	// the context ends.
	sweep func(context.Context)
	close func() error
}

// open opens the store given by -store, without I/O.
func open(name string, logger *slog.Logger) (*shared, error) {
	engine, where, ok := strings.Cut(name, ":")
	if !ok || where == "" {
		return nil, errors.New("-store: want sqlite:PATH, postgres:DSN, mysql:DSN or etcd:ENDPOINTS")
	}
	options := &sqlstore.Options{Logger: logger}
	switch engine {
	case "sqlite":
		return openSQL("sqlite", "file:"+filepath.ToSlash(where)+sqliteSettings, sqlstore.SQLite(), options)
	case "postgres":
		if strings.HasPrefix(where, "//") {
			where = name // a complete URL
		}
		return openSQL("pgx", where, sqlstore.PostgreSQL(), options)
	case "mysql":
		return openSQL("mysql", where, sqlstore.MySQL(), options)
	case "etcd":
		return openEtcd(strings.Split(where, ","), logger)
	}
	return nil, fmt.Errorf("-store: unknown engine %q", engine)
}

// sqliteSettings make acknowledged changes survive a power failure, and processes wait for
// each other.
const sqliteSettings = "?_pragma=busy_timeout(250)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)"

// maxConns is the number of connections of a replica to its database.
const maxConns = 16

func openSQL(driver, dsn string, dialect sqlstore.Dialect, options *sqlstore.Options) (*shared, error) {
	db, err := sql.Open(driver, dsn)
	if err != nil {
		return nil, fmt.Errorf("-store: data source name rejected by the %s driver", driver) // without the cause, which may hold a password
	}
	// Every idle connection is kept: with the default of two, a busy replica opens new ones
	// all the time.
	db.SetMaxOpenConns(maxConns)
	db.SetMaxIdleConns(maxConns)
	st, err := sqlstore.New(db, dialect, options)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &shared{
		store:   st,
		migrate: st.Migrate,
		sweep:   func(ctx context.Context) { st.SweepEvery(ctx, sweepEvery) },
		close:   db.Close,
	}, nil
}

func openEtcd(endpoints []string, logger *slog.Logger) (*shared, error) {
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
		migrate: func(context.Context) error { return nil }, // etcd has no schema
		sweep:   func(ctx context.Context) { sweepEtcd(ctx, st, logger) },
		close:   func() error { return errors.Join(st.Close(), client.Close()) },
	}, nil
}

const (
	sweepLimit = 1000
	sweepEvery = time.Minute
)

// sweepEtcd sweeps some keys of etcd at a time, as one of many replicas, until ctx ends.
func sweepEtcd(ctx context.Context, st *etcdstore.Store, logger *slog.Logger) {
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if _, err := st.Sweep(ctx, sweepLimit); err != nil && ctx.Err() == nil {
			logger.Warn("sweep", "error", err)
		}
	}
}
