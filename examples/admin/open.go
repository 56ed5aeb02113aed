package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"example.com/go-webhookcfg/examples/internal/dsn"
	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/store/etcdstore"
	"example.com/go-webhookcfg/store/sqlstore"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/deliver/outbox"
)

// connections limits a pool, and the changes and clients in progress during a copy.
const connections = 16

// schemes are the kinds of stores.
var schemes = map[string]func(context.Context, address, openOptions) (*opened, error){
	"file": openFile, "sqlite": openSQLite, "postgres": openPostgreSQL, "postgresql": openPostgreSQL,
	"mysql": openMySQL, "etcd": openEtcd,
}

// openOptions say how to open a store.
type openOptions struct {
	logger  *slog.Logger
	shared  bool
	migrate bool // create what doesn't exist: a file, a database, tables
	// bulk is for many changes that need to be durable only together: call flush after them.
	bulk bool
}

func (o openOptions) file() *store.FileOptions {
	return &store.FileOptions{Logger: o.logger, AllowShared: o.shared, CompactManually: true}
}

// opened is a store of any kind, open.
type opened struct {
	patient
	// sealed is the store without the keys, if there are some. Unless allowsPlain is set, all of its
	// URLs have to be encrypted.
	sealed      operable
	allowsPlain bool
	// name says where the store is, without a password.
	name   string
	health func(context.Context) error
	// settings returns warnings. It's nil if there's nothing to check for this kind of store.
	settings func(context.Context) ([]string, error)
	// integrity reads all of a database, and returns what's damaged. It's nil if this kind of store
	// can't say that.
	integrity func(context.Context) ([]string, error)
	// hasNothing reports whether there's nothing with this prefix, as if it's wrong. It's nil if the store
	// can't be opened then.
	hasNothing func(context.Context) (bool, error)
	// deliveries has the records of deliveries, and outbox returns the queue with this prefix.
	// Only databases have them.
	deliveries deliver.HealthStore
	outbox     func(prefix string) (*outbox.Outbox, error)
	// flush makes all changes durable. It's nil if each change is durable by itself.
	flush func(context.Context) error
	close func() error
}

// open connects to the store. Close it when you're done.
func (a address) open(ctx context.Context, o openOptions) (*opened, error) {
	st, err := schemes[a.scheme](ctx, a, o)
	if err != nil {
		return nil, fmt.Errorf("open %s store: %w", a.scheme, err)
	}
	return st, nil
}

// probe reads from the store once, so that a command fails before it starts its work.
func (st *opened) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if _, err := st.Resolve(ctx, "?", "?"); err != nil {
		return fmt.Errorf("%s can't be used: %w", st.name, err)
	}
	return nil
}

// mustHaveSomething refuses a store with nothing, whose prefix is probably misspelled.
func (st *opened) mustHaveSomething(ctx context.Context) error {
	if st.hasNothing == nil {
		return nil
	}
	nothing, err := within(ctx, st.hasNothing)
	if err != nil {
		return fmt.Errorf("%s can't be used: %w", st.name, err)
	}
	if nothing {
		return fmt.Errorf("%s has nothing: check the address and -prefix", st.name)
	}
	return nil
}

// checkFilled returns an error if a file is missing or empty. OpenFile would make a new store of it.
func checkFilled(path string) error {
	info, err := os.Stat(filepath.Clean(path))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return err
	case err == nil && info.Mode().IsRegular() && info.Size() == 0:
		return fmt.Errorf("%s is empty, so it isn't the file of a store: restore a backup", path)
	}
	return nil
}

func openFile(_ context.Context, a address, o openOptions) (*opened, error) {
	if !o.migrate {
		if err := checkFilled(a.place); err != nil {
			return nil, err
		}
	}
	f, err := store.OpenFile(a.place, o.file())
	if err != nil {
		return nil, err
	}
	return &opened{patient: patient{f}, name: a.place, health: f.Healthy, close: f.Close}, nil
}

func openSQLite(ctx context.Context, a address, o openOptions) (*opened, error) {
	if o.migrate {
		// SQLite would create a file that other users can read.
		file, err := os.OpenFile(a.place, os.O_RDWR|os.O_CREATE, 0o600)
		if err == nil {
			err = file.Close()
		}
		if err != nil {
			return nil, err
		}
	}
	settings := "_pragma=busy_timeout(250)&_pragma=secure_delete(ON)&_pragma=synchronous(FULL)"
	if o.bulk {
		// Commits then don't wait for the disk, and a power failure undoes the last ones. WAL stays
		// on in the file, so what only reads or changes a store of a service leaves it as it is.
		settings = "_pragma=busy_timeout(250)&_pragma=journal_mode(WAL)&_pragma=secure_delete(ON)&_pragma=synchronous(NORMAL)"
	}
	name, err := dsn.SQLite(a.place, settings)
	if err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", name)
	if err != nil {
		return nil, err
	}
	st, err := openSQL(ctx, db, sqlstore.SQLite(), a, a.place, o)
	if err != nil {
		return nil, err
	}
	ofDatabase := st.settings
	st.settings = func(ctx context.Context) ([]string, error) {
		warnings, err := ofDatabase(ctx)
		if info, statErr := os.Stat(a.place); statErr == nil && runtime.GOOS != "windows" && !o.shared && info.Mode().Perm()&0o077 != 0 {
			warnings = append(warnings, fmt.Sprintf("other users can open %s (mode %04o), and webhook URLs are credentials: chmod 600 it, and the files %[1]s-wal and %[1]s-shm", a.place, info.Mode().Perm()))
		}
		return warnings, err
	}
	st.integrity = func(ctx context.Context) ([]string, error) { return integrity(ctx, db) }
	if o.bulk {
		st.flush = func(ctx context.Context) error { return checkpoint(ctx, db) }
	}
	return st, nil
}

// integrity returns what SQLite finds damaged in a database, up to a hundred lines. It has no time limit,
// since it reads the whole file.
func integrity(ctx context.Context, db *sql.DB) (damage []string, err error) {
	rows, err := db.QueryContext(ctx, "PRAGMA integrity_check")
	if isDamaged(err) {
		return []string{err.Error()}, nil
	} else if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		for line := range strings.Lines(text) { // a row can have several
			if line = strings.TrimSpace(line); line != "ok" {
				damage = append(damage, line)
			}
		}
	}
	if err = rows.Err(); isDamaged(err) { // where the check itself can't go on
		return append(damage, err.Error()), nil
	}
	return damage, err
}

// isDamaged reports whether an error is SQLite's about a damaged file.
func isDamaged(err error) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return false
	}
	primary := e.Code() & 0xff
	return primary == sqlite3.SQLITE_CORRUPT || primary == sqlite3.SQLITE_NOTADB
}

// checkpoint makes all changes in an SQLite database durable. It waits for readers.
func checkpoint(ctx context.Context, db *sql.DB) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		var isBusy bool
		var frames, copied int
		err := db.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&isBusy, &frames, &copied)
		if err = cmp.Or(err, ctx.Err()); err != nil || !isBusy {
			return err
		}
		time.Sleep(time.Millisecond)
	}
}

// syntax is the hint about an address that a driver rejects.
const syntax = "; check its syntax (the details could show a password)"

func openPostgreSQL(ctx context.Context, a address, o openOptions) (*opened, error) {
	place := a.place
	if strings.HasPrefix(place, "//") {
		if err := dsn.CheckURL("postgres:" + place); err != nil {
			return nil, err
		}
		place = "postgres:" + place
	}
	cfg, err := pgx.ParseConfig(place)
	if err != nil {
		return nil, dsn.Rejected("pgx rejects the address", syntax, err)
	}
	return openSQL(ctx, stdlib.OpenDB(*cfg), sqlstore.PostgreSQL(), a, fmt.Sprintf("%s:%d/%s", cfg.Host, cfg.Port, cfg.Database), o)
}

func openMySQL(ctx context.Context, a address, o openOptions) (*opened, error) {
	cfg, err := mysql.ParseDSN(a.place)
	if err != nil {
		return nil, dsn.Rejected("go-sql-driver/mysql rejects the address", syntax, err)
	}
	cfg.Logger = &mysql.NopLogger{}
	const patience = "innodb_lock_wait_timeout"
	if cfg.Params == nil {
		cfg.Params = make(map[string]string)
	}
	cfg.Params[patience] = cmp.Or(cfg.Params[patience], "1")
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, errors.New("go-sql-driver/mysql rejects the settings in the address; check those after the question mark")
	}
	return openSQL(ctx, sql.OpenDB(connector), sqlstore.MySQL(), a, cfg.Addr+"/"+cfg.DBName, o)
}

func openSQL(ctx context.Context, db *sql.DB, dialect sqlstore.Dialect, a address, name string, o openOptions) (*opened, error) {
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	st, err := sqlstore.New(db, dialect, &sqlstore.Options{Prefix: a.prefix, Logger: o.logger})
	if err == nil && o.migrate {
		err = st.Migrate(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", name, err), db.Close())
	}
	return &opened{
		patient: patient{st}, name: name, health: st.Healthy, settings: st.Check, close: db.Close, deliveries: st,
		outbox: func(prefix string) (*outbox.Outbox, error) {
			return outbox.New(db, dialect, nil, &outbox.Options{Prefix: prefix})
		},
	}, nil
}

func openEtcd(_ context.Context, a address, o openOptions) (*opened, error) {
	cfg := clientv3.Config{
		Logger: zap.NewNop(), DialTimeout: 5 * time.Second,
		DialKeepAliveTime: 10 * time.Second, DialKeepAliveTimeout: 5 * time.Second,
	}
	for text := range strings.SplitSeq(a.place, ",") {
		endpoint, err := url.Parse(text)
		if err != nil || endpoint.Host == "" || endpoint.Scheme != "http" && endpoint.Scheme != "https" {
			return nil, errors.New("the endpoints of etcd are URLs with http or https, separated by commas; at least one of yours isn't")
		}
		if err := dsn.CheckURL(text); err != nil {
			return nil, err
		}
		if strings.Trim(endpoint.Path, "/") != "" || endpoint.RawQuery != "" {
			return nil, errors.New("the endpoints of etcd have no path and no query: give the prefix of the keys with -prefix")
		}
		if endpoint.User != nil {
			password, _ := endpoint.User.Password()
			if cfg.Username != "" && (cfg.Username != endpoint.User.Username() || cfg.Password != password) {
				return nil, errors.New("the endpoints of etcd have several users: a client can only be one")
			}
			cfg.Username, cfg.Password = endpoint.User.Username(), password
		}
		if endpoint.Scheme == "https" {
			cfg.TLS = new(tls.Config)
		}
		cfg.Endpoints = append(cfg.Endpoints, endpoint.Scheme+"://"+endpoint.Host)
	}
	prefix := cmp.Or(a.prefix, "webhookcfg/")
	name := strings.Join(cfg.Endpoints, ",") + " with the prefix " + prefix
	client, err := clientv3.New(cfg)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	st, err := etcdstore.New(client, &etcdstore.Options{Prefix: prefix, Logger: o.logger})
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return &opened{
		patient: patient{st}, name: name, health: st.Healthy,
		hasNothing: func(ctx context.Context) (bool, error) {
			found, err := client.Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly(), clientv3.WithLimit(1))
			return err == nil && len(found.Kvs) == 0, err
		},
		close: func() error { return errors.Join(st.Close(), client.Close()) },
	}, nil
}
