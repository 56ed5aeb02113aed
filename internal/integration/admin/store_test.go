// Package admin tests package store/admin on every engine: copies from each and to each,
// migrations under writers, and what an erasure leaves in the files and databases.
package admin_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/internal/integration/engine"
	"example.com/go-webhookcfg/internal/integration/etcdcluster"
	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/store/admin"
	"example.com/go-webhookcfg/store/etcdstore"
	"example.com/go-webhookcfg/store/sqlstore"
	"example.com/go-webhookcfg/webhookcfg"
	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	_ "modernc.org/sqlite"
)

func TestMain(m *testing.M) {
	etcdcluster.RunMember()
	if from, to := os.Getenv(fromVar), os.Getenv(toVar); to != "" {
		copyUntilKilled(from, to)
	}
	os.Exit(m.Run())
}

// place is where a store is, as text, so that another process can open it too.
type place struct {
	engine, address, prefix string
	// data is the directory of the server. It's "" if there's none or it's external, and not
	// part of the text.
	data string
}

func (p place) String() string { return strings.Join([]string{p.engine, p.prefix, p.address}, " ") }

func parsePlace(text string) place {
	parts := strings.SplitN(text, " ", 3)
	return place{engine: parts[0], address: parts[2], prefix: parts[1]}
}

// drivers are the database drivers of the engines.
var drivers = map[string]struct {
	name    string
	dialect sqlstore.Dialect
}{
	"sqlite":   {"sqlite", sqlstore.SQLite()},
	"postgres": {"pgx", sqlstore.PostgreSQL()},
	"mariadb":  {"mysql", sqlstore.MySQL()},
}

// patience returns a context in which a feed succeeds even if the machine is slow. Without a
// deadline, etcd's fails after seconds.
func patience(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// open opens the store, and returns a function that closes it.
func (p place) open(ctx context.Context) (webhookcfg.Store, func() error, error) {
	switch p.engine {
	case "file":
		f, err := store.OpenFile(p.address, nil)
		if err != nil {
			return nil, nil, err
		}
		return f, f.Close, nil
	case "etcd":
		client, err := clientv3.New(clientv3.Config{Endpoints: []string{p.address}, Logger: zap.NewNop()})
		if err != nil {
			return nil, nil, err
		}
		st, err := etcdstore.New(client, &etcdstore.Options{Prefix: p.prefix})
		if err != nil {
			return nil, nil, errors.Join(err, client.Close())
		}
		return st, func() error { return errors.Join(st.Close(), client.Close()) }, nil
	}
	db, st, err := p.openSQL()
	if err == nil {
		err = st.Migrate(ctx)
	}
	if err != nil {
		return nil, nil, err
	}
	return st, db.Close, nil
}

func (p place) openSQL() (*sql.DB, *sqlstore.Store, error) {
	driver := drivers[p.engine]
	db, err := sql.Open(driver.name, p.address)
	if err != nil {
		return nil, nil, err
	}
	db.SetMaxOpenConns(10)
	db.SetMaxIdleConns(10)
	st, err := sqlstore.New(db, driver.dialect, &sqlstore.Options{Prefix: p.prefix})
	return db, st, err
}

// use opens the store and calls do with it.
func (p place) use(t *testing.T, do func(st webhookcfg.Store)) {
	t.Helper()
	st, closeStore, err := p.open(t.Context())
	if err != nil {
		t.Fatalf("%s: %v", p.engine, err)
	}
	defer func() {
		if err := closeStore(); err != nil {
			t.Errorf("%s: close: %v", p.engine, err)
		}
	}()
	do(st)
}

// engines starts the servers. It returns a function that returns a new place in an engine.
func engines(t *testing.T) (names []string, fresh func(t *testing.T, name string) place) {
	postgres, mariadb := engine.SharedPostgreSQL().Own(t), engine.SharedMariaDB().Own(t)
	etcd := etcdcluster.Start(t, 1, etcdcluster.Options{})
	endpoint := etcd.Client(t).Endpoints()[0]
	return []string{"file", "sqlite", "postgres", "mariadb", "etcd"}, func(t *testing.T, name string) place {
		p := place{engine: name, prefix: fmt.Sprintf("t%x_", rand.Uint64())}
		switch name {
		case "file":
			p.address, p.prefix = filepath.Join(t.TempDir(), "webhooks.jsonl"), "-"
		case "sqlite":
			path := filepath.ToSlash(filepath.Join(t.TempDir(), "webhooks.db"))
			p.address = "file:" + path + "?_pragma=busy_timeout(250)&_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)"
		case "postgres":
			p.address, p.data = postgres.DSN(), postgres.Data()
		case "mariadb":
			p.address, p.data = mariadb.DSN(), mariadb.Data()
		default:
			p.address, p.prefix, p.data = endpoint, p.prefix+"/", etcd.Data(0)
		}
		return p
	}
}

// content returns changes that give a few clients every kind of webhook, and one client more
// overrides than fit a page.
func content() (all []webhookcfg.Change) {
	for n, client := range []string{"acme", "Acme", "acme/eu", "ä b", "%25", "globex", "initech"} {
		if n%3 > 0 {
			all = append(all, hooktest.SetAll(client, n))
		}
		all = append(all, hooktest.Set(client, "e1", n+1), hooktest.Set(client, "a/b", n+2), hooktest.Set(client, "é", n+3))
		if n%3 > 0 {
			all = append(all, hooktest.Unset(client, "off", n+4), hooktest.Unset(client, "e1", n+5))
		}
	}
	all = append(all, hooktest.SetAll("large", 1))
	for n := range 1050 {
		all = append(all, hooktest.Set("large", fmt.Sprintf("e%d", n), n))
	}
	return all
}

// modelled returns a store in memory with the content.
func modelled(t *testing.T, changes ...webhookcfg.Change) *store.Memory {
	m := store.NewMemory()
	hooktest.Apply(t, m, changes...)
	return m
}

// dump returns all webhooks of a store, one per line.
func dump(t *testing.T, st webhookcfg.Store) (lines []string) {
	t.Helper()
	for client, err := range admin.Clients(t.Context(), st) {
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, dumpOf(t, st, client)...)
	}
	slices.Sort(lines)
	return lines
}

// dumpOf returns the webhooks of one client.
func dumpOf(t *testing.T, st webhookcfg.Store, client string) (lines []string) {
	t.Helper()
	for e, err := range admin.Webhooks(t.Context(), st, client) {
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, fmt.Sprintf("%q %v %s", client, e.Scope, hooktest.Describe(e.Webhook)))
	}
	return lines
}

// requireEqual fails unless the dumps of two stores are equal, and Verify finds no
// difference.
func requireEqual(t *testing.T, what string, dst, src webhookcfg.Store) {
	t.Helper()
	want, got := dump(t, src), dump(t, dst)
	if !slices.Equal(want, got) {
		t.Errorf("%s: the dumps differ: %d lines, want %d", what, len(got), len(want))
	}
	report, err := admin.Verify(t.Context(), dst, src, nil)
	if err != nil || report.Different > 0 || report.Webhooks != len(want) {
		t.Errorf("%s: verify: %d of %d webhooks differ, %v, %v", what, report.Different, report.Webhooks, report.Differences, err)
	}
}

// mustCopy copies everything, and fails if anything was refused.
func mustCopy(t *testing.T, what string, dst, src webhookcfg.Store) admin.Report {
	t.Helper()
	report, err := admin.Copy(t.Context(), dst, src, &admin.CopyOptions{Replace: true})
	if err != nil || report.Different > 0 {
		t.Fatalf("%s: %+v, %v", what, report, err)
	}
	return report
}
