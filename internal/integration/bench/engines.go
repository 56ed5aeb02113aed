package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/go-sql-driver/mysql" // the driver "mysql"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"
	_ "modernc.org/sqlite" // the driver "sqlite"

	"example.com/go-webhookcfg/internal/integration/engine"
	"example.com/go-webhookcfg/internal/integration/etcdcluster"
	"example.com/go-webhookcfg/store/etcdstore"
	"example.com/go-webhookcfg/store/sqlstore"
	"example.com/go-webhookcfg/webhookcfg"
)

// dbEngine is a database engine, which runs until the test ends.
type dbEngine struct {
	name  string
	start func(t *testing.T) database
}

// The prefixes of the names that the two sides use in a database.
const (
	oursPrefix = "bench_ours_"
	barePrefix = "bench_bare_"
)

// database is a running engine.
type database interface {
	// open opens a store on new connections.
	open(t testing.TB, prefix string) webhookcfg.Store
	// bare returns the engine's client, sending the requests of a store with the prefix.
	bare(t testing.TB, prefix string) access
	// fill inserts n overrides, in no order.
	fill(t testing.TB, prefix string, n int, nth func(n int) webhookcfg.Change) error
}

// access is a way to use a database.
type access interface {
	set(ctx context.Context, c webhookcfg.Change) error
	url(ctx context.Context, client, entity string) (string, error)
}

// storeAccess goes through a store.
type storeAccess struct{ store webhookcfg.Store }

func (s storeAccess) set(ctx context.Context, c webhookcfg.Change) error {
	return s.store.Apply(ctx, c)
}

func (s storeAccess) url(ctx context.Context, client, entity string) (string, error) {
	hook, err := s.store.Resolve(ctx, client, entity)
	return hook.URL.Reveal(), err
}

func engines() []dbEngine {
	return []dbEngine{
		{"SQLite", startSQLite},
		{"PostgreSQL", func(t *testing.T) database {
			return newSQLDatabase(t, "pgx", engine.PostgreSQL(t).DSN(), sqlstore.PostgreSQL())
		}},
		{"MariaDB", func(t *testing.T) database {
			return newSQLDatabase(t, "mysql", engine.MariaDB(t).DSN(), sqlstore.MySQL())
		}},
		{"etcd", func(t *testing.T) database {
			return etcdDatabase{etcdcluster.Start(t, 3, etcdcluster.Options{Sync: true})}
		}},
	}
}

// startSQLite starts no process: SQLite is a library.
func startSQLite(t *testing.T) database {
	path := filepath.ToSlash(filepath.Join(t.TempDir(), "webhooks.db"))
	return newSQLDatabase(t, "sqlite", "file:"+path+sqliteSettings, sqlstore.SQLite())
}

// sqlDatabase is an SQL server, or a file of SQLite.
type sqlDatabase struct {
	driver, dsn string
	dialect     sqlstore.Dialect
	admin       *sql.DB
}

// newSQLDatabase drops leftover tables at once, and its own when the test ends.
func newSQLDatabase(t testing.TB, driver, dsn string, dialect sqlstore.Dialect) *sqlDatabase {
	t.Helper()
	d := &sqlDatabase{driver: driver, dsn: dsn, dialect: dialect}
	d.admin = d.connect(t)
	d.drop(t)
	t.Cleanup(func() { d.drop(t) })
	return d
}

func (d *sqlDatabase) drop(t testing.TB) {
	for _, prefix := range []string{oursPrefix, barePrefix} {
		for _, table := range []string{"schema", "client", "override", "delivery"} {
			if _, err := d.admin.Exec("DROP TABLE IF EXISTS " + prefix + table); err != nil {
				t.Error(err)
			}
		}
	}
}

// connect returns a handle with a connection for each concurrent caller.
func (d *sqlDatabase) connect(t testing.TB) *sql.DB {
	t.Helper()
	db, err := sql.Open(d.driver, d.dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(maxCallers)
	db.SetMaxIdleConns(maxCallers)
	return db
}

func (d *sqlDatabase) open(t testing.TB, prefix string) webhookcfg.Store {
	t.Helper()
	st, err := sqlstore.New(d.connect(t), d.dialect, &sqlstore.Options{Prefix: prefix})
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return st
}

func (d *sqlDatabase) bare(t testing.TB, prefix string) access {
	t.Helper()
	d.open(t, prefix) // creates the tables
	r, err := newReplay(t.Context(), d.connect(t), d.dialect, prefix)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// fill inserts the rows of overrides in the generation of new clients.
func (d *sqlDatabase) fill(t testing.TB, prefix string, n int, nth func(n int) webhookcfg.Change) error {
	tx, err := d.admin.BeginTx(t.Context(), nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	const size = 500
	for first := 0; first < n; first += size {
		var args []any
		for i := first; i < min(first+size, n); i++ {
			c := nth(i)
			args = append(args, []byte(c.Client), []byte(c.Scope.Entity()), []byte(c.URL.Reveal()))
		}
		if _, err := tx.ExecContext(t.Context(), d.insert(prefix, len(args)/3), args...); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// lock locks the row of a client, as a process does that disappears in the middle of a
// change.
func (d *sqlDatabase) lock(ctx context.Context, prefix, client string) (unlock func() error, err error) {
	return hold(ctx, d.admin, "UPDATE "+prefix+"client SET swept = swept WHERE id = '"+client+"'")
}

// beginElsewhere starts a transaction with a number in another database of a server of
// PostgreSQL.
func (d *sqlDatabase) beginElsewhere(t testing.TB) (end func() error, err error) {
	at, err := url.Parse(d.dsn)
	if err != nil {
		return nil, err
	}
	at.Path = "/template1" // which every server has
	elsewhere := sqlDatabase{driver: d.driver, dsn: at.String()}
	return hold(t.Context(), elsewhere.connect(t), "SELECT pg_current_xact_id()")
}

// hold starts a transaction with a statement, and keeps it open until it is released.
func hold(ctx context.Context, db *sql.DB, statement string) (release func() error, err error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	if _, err := tx.ExecContext(ctx, statement); err != nil {
		return nil, errors.Join(err, tx.Rollback())
	}
	return tx.Rollback, nil
}

func (d *sqlDatabase) insert(prefix string, rows int) string {
	values := make([]string, rows)
	for i := range values {
		values[i] = fmt.Sprintf("(?, 0, ?, ?, %d)", since.Unix())
		if d.driver == "pgx" {
			values[i] = fmt.Sprintf("($%d, 0, $%d, $%d, %d)", 3*i+1, 3*i+2, 3*i+3, since.Unix())
		}
	}
	return "INSERT INTO " + prefix + "override (client, gen, entity, url, since) VALUES " + strings.Join(values, ", ")
}

// etcdDatabase is a cluster.
type etcdDatabase struct{ cluster *etcdcluster.Cluster }

func (d etcdDatabase) open(t testing.TB, prefix string) webhookcfg.Store {
	t.Helper()
	st, err := etcdstore.New(d.cluster.Client(t), &etcdstore.Options{Prefix: prefix + "/"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	return st
}

func (d etcdDatabase) bare(t testing.TB, prefix string) access {
	t.Helper()
	return etcdAccess{d.cluster.Client(t), prefix + "/"}
}

// fill puts as many keys in one transaction as a server accepts.
func (d etcdDatabase) fill(t testing.TB, prefix string, n int, nth func(n int) webhookcfg.Change) error {
	c := etcdAccess{d.cluster.Client(t), prefix + "/"}
	const size = 128
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(maxCallers)
	for first := 0; first < n; first += size {
		group.Go(func() error {
			var puts []clientv3.Op
			for i := first; i < min(first+size, n); i++ {
				change := nth(i)
				puts = append(puts, clientv3.OpPut(c.key(change.Client, change.Scope.Entity()), value(change)))
			}
			_, err := c.Txn(ctx).Then(puts...).Commit()
			return err
		})
	}
	return group.Wait()
}

// etcdAccess makes the calls of the store.
type etcdAccess struct {
	*clientv3.Client
	prefix string
}

func (c etcdAccess) key(client, entity string) string { return c.prefix + client + "/" + entity }

func value(c webhookcfg.Change) string { return fmt.Sprint("1 ", c.Time.Unix(), " ", c.URL.Reveal()) }

func (c etcdAccess) set(ctx context.Context, change webhookcfg.Change) error {
	_, err := c.Put(ctx, c.key(change.Client, change.Scope.Entity()), value(change))
	return err
}

func (c etcdAccess) url(ctx context.Context, client, entity string) (string, error) {
	got, err := c.Txn(ctx).Then(clientv3.OpGet(c.key(client, "")), clientv3.OpGet(c.key(client, entity))).Commit()
	if err != nil {
		return "", err
	}
	base, override := got.Responses[0].GetResponseRange().Kvs, got.Responses[1].GetResponseRange().Kvs
	if len(base) > 0 && (len(override) == 0 || override[0].ModRevision <= base[0].ModRevision) {
		override = base
	}
	if len(override) == 0 {
		return "", nil
	}
	_, rest, _ := strings.Cut(string(override[0].Value), " ")
	_, url, _ := strings.Cut(rest, " ")
	return url, nil
}
