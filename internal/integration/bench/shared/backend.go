package main

import (
	"context"
	"path/filepath"
	"testing"

	"example.com/go-webhookcfg/internal/integration/engine"
	"example.com/go-webhookcfg/internal/integration/etcdcluster"
	"example.com/go-webhookcfg/store/sqlstore"
	"example.com/go-webhookcfg/webhookcfg"
	_ "github.com/go-sql-driver/mysql" // the driver "mysql"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	_ "modernc.org/sqlite"             // the driver "sqlite"
)

// backend is what is started to be measured. It ends with the test.
type backend struct {
	name  string
	start func(t *testing.T) database
}

// The two sides keep apart from each other by what begins their names in a database.
const (
	oursPrefix = "bench_ours_"
	barePrefix = "bench_bare_"
)

// database is a backend that runs.
type database interface {
	// open opens a store, on connections of its own.
	open(t testing.TB, prefix string) webhookcfg.Store
	// bare returns the engine's own client with what a store on the prefix would send.
	bare(t testing.TB, prefix string) client
	// fill puts overrides there that were set before: n of them, in no order.
	fill(t testing.TB, prefix string, n int, nth func(n int) webhookcfg.Change) error
}

// client is a way to use a database.
type client interface {
	set(ctx context.Context, c webhookcfg.Change) error
	url(ctx context.Context, client, entity string) (string, error)
}

// storeClient is the way through a store.
type storeClient struct{ store webhookcfg.Store }

func (s storeClient) set(ctx context.Context, c webhookcfg.Change) error {
	return s.store.Apply(ctx, c)
}

func (s storeClient) url(ctx context.Context, client, entity string) (string, error) {
	hook, err := s.store.Resolve(ctx, client, entity)
	return hook.URL.Reveal(), err
}

func backends() []backend {
	return []backend{
		{"SQLite", startSQLite},
		{"PostgreSQL", func(t *testing.T) database {
			return newSQLDatabase(t, "pgx", engine.PostgreSQL(t).DSN(), sqlstore.PostgreSQL())
		}},
		{"MariaDB", func(t *testing.T) database {
			return newSQLDatabase(t, "mysql", engine.MariaDB(t).DSN(), sqlstore.MySQL())
		}},
		{"etcd", func(t *testing.T) database { return etcdDatabase{etcdcluster.Start(t, 3)} }},
	}
}

// startSQLite starts nothing: SQLite is a library. It has its file where servers
// have theirs.
func startSQLite(t *testing.T) database {
	path := filepath.ToSlash(filepath.Join(t.TempDir(), "webhooks.db"))
	const durable = "?_pragma=busy_timeout(250)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)"
	return newSQLDatabase(t, "sqlite", "file:"+path+durable, sqlstore.SQLite())
}
