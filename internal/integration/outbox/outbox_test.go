// Package outbox tests package outbox on real databases, and the plans of all SQL.
package outbox_test

import (
	"cmp"
	"context"
	"database/sql"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/go-webhookcfg/internal/integration/engine"
	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/store/sqlstore"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/deliver/outbox"
	"example.com/go-webhookcfg/webhookcfg/egress"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"
)

var (
	soak   = flag.Bool("soak", false, "run the tests that take long")
	rounds = flag.Int("rounds", 10, "how many times tests kill a process or a server")
)

var prefixes atomic.Int64

var (
	postgreSQL = engine.SharedPostgreSQL()
	mariaDB    = engine.SharedMariaDB()
)

func TestMain(m *testing.M) {
	if config := os.Getenv(memberVar); config != "" {
		if err := runMember(config); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	code := postgreSQL.Main(m)
	if err := mariaDB.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

type engineCase struct {
	name    string
	dialect sqlstore.Dialect
	driver  string
	dsn     func(t testing.TB) string
}

var engines = []engineCase{
	{"SQLite", sqlstore.SQLite(), "sqlite", func(t testing.TB) string {
		path := filepath.Join(t.TempDir(), "outbox.db")
		return "file:" + path + "?_pragma=busy_timeout(250)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)"
	}},
	{"PostgreSQL", sqlstore.PostgreSQL(), "pgx", func(t testing.TB) string { return postgreSQL.Get(t).DSN() }},
	{"MariaDB", sqlstore.MySQL(), "mysql", func(t testing.TB) string { return mariaDB.Get(t).DSN() }},
}

func open(t testing.TB, driver, dsn string) *sql.DB {
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(8)
	db.SetMaxIdleConns(8)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

type fixture struct {
	t        testing.TB
	db       *sql.DB
	store    webhookcfg.Store
	server   *httptest.Server
	box      *outbox.Outbox
	mu       sync.Mutex
	arrivals map[string][]time.Time
	order    []string
	respond  http.HandlerFunc
	prefix   string
	dsn      string
	sender   *deliver.Sender
	isSQLite bool
}

func newFixture(t testing.TB, e engineCase, opts *outbox.Options, do *deliver.Options) *fixture {
	dsn := e.dsn(t)
	f := &fixture{t: t, db: open(t, e.driver, dsn), dsn: dsn, isSQLite: e.name == "SQLite", arrivals: map[string][]time.Time{}}
	f.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		f.mu.Lock()
		id := r.Header.Get("Webhook-Id")
		f.arrivals[id] = append(f.arrivals[id], time.Now())
		f.order = append(f.order, id)
		f.mu.Unlock()
		if f.respond != nil {
			f.respond(w, r)
		}
	}))
	listener, err := net.Listen("tcp4", "0.0.0.0:0") // for all of 127.0.0.0/8
	if err != nil {
		t.Fatal(err)
	}
	_ = f.server.Listener.Close()
	f.server.Listener = listener
	f.server.Start()
	f.server.URL = fmt.Sprintf("http://127.0.0.1:%d", listener.Addr().(*net.TCPAddr).Port)
	t.Cleanup(f.server.Close)
	st := store.NewMemory()
	f.store = st
	f.sender = newSender(t, st, do)
	if opts == nil {
		opts = &outbox.Options{}
	}
	opts.KeepDelivered.PerClient = cmp.Or(opts.KeepDelivered.PerClient, 100_000)
	opts.Prefix = fmt.Sprintf("t%d_", prefixes.Add(1))
	opts.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	f.prefix = opts.Prefix
	f.box, err = outbox.New(f.db, e.dialect, f.sender, opts)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.box.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return f
}

func newSender(t testing.TB, st webhookcfg.Store, opts *deliver.Options) *deliver.Sender {
	keys, err := deliver.DerivedKeys([]byte("0123456789abcdef0123456789abcdef"))
	if err != nil {
		t.Fatal(err)
	}
	var o deliver.Options
	if opts != nil {
		o = *opts
	}
	o.Policy = &egress.Policy{AllowHTTP: true, AllowPrefixes: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	sender, err := deliver.New(st, keys, &o)
	if err != nil {
		t.Fatal(err)
	}
	return sender
}

// peer returns the outbox of another process, with a connection pool and a sender of its own.
func (f *fixture) peer(e engineCase, db *sql.DB, opts outbox.Options) *outbox.Outbox {
	opts.Prefix = f.prefix
	opts.KeepDelivered.PerClient = cmp.Or(opts.KeepDelivered.PerClient, 100_000)
	opts.Logger = slog.New(slog.NewTextHandler(f.t.Output(), nil))
	box, err := outbox.New(db, e.dialect, newSender(f.t, f.store, nil), &opts)
	if err != nil {
		f.t.Fatal(err)
	}
	return box
}

func (f *fixture) run() (stop func()) { return f.runBox(f.box) }

func (f *fixture) runBox(box *outbox.Outbox) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- box.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			f.t.Error(err)
		}
	})
	f.t.Cleanup(stop)
	return stop
}

func (f *fixture) set(client, path string) {
	f.apply(webhookcfg.SetChange(client, webhookcfg.All(), egress.NewURL(f.server.URL+path)))
}

func (f *fixture) apply(c webhookcfg.Change) {
	c.Time = time.Now().Truncate(time.Microsecond)
	if err := f.store.Apply(context.Background(), c); err != nil {
		f.t.Fatal(err)
	}
}

// enqueue also waits for its turn on SQLite, where a busy machine can take longer than the time-out
// of the connections.
func (f *fixture) enqueue(client, entity string, ids ...string) {
	for {
		err := f.tryEnqueue(client, entity, ids)
		if err == nil {
			f.box.Committed(client)
			return
		}
		if !strings.Contains(err.Error(), "SQLITE_BUSY") {
			f.t.Fatal(err)
		}
	}
}

func (f *fixture) tryEnqueue(client, entity string, ids []string) error {
	tx, err := f.db.Begin()
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	for _, id := range ids {
		if err := f.box.Enqueue(context.Background(), tx, outbox.Notification{Client: client, Entity: entity, Message: deliver.Message{ID: id, Body: []byte(`{}`)}}); err != nil {
			return err
		}
	}
	return tx.Commit()
}

func (f *fixture) await(n int, timeout time.Duration) {
	f.t.Helper()
	for deadline := time.Now().Add(timeout); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		f.mu.Lock()
		got := len(f.arrivals)
		f.mu.Unlock()
		if got >= n {
			return
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.t.Fatalf("%d of %d arrived", len(f.arrivals), n)
}

func TestSmoke(t *testing.T) {
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			f := newFixture(t, e, nil, nil)
			f.set("a", "/x")
			stop := f.run()
			f.enqueue("a", "e", "m1", "m2", "m3", "m1")
			f.await(3, 5*time.Second)
			t.Log(f.order)
			start := time.Now()
			for i := range 300 {
				f.enqueue("a", fmt.Sprint("e", i), fmt.Sprint("n", i))
			}
			f.await(303, 10*time.Second)
			t.Log("303 in", time.Since(start))
			stop()
		})
	}
}

// fill enqueues many notifications, each for an entity of its own.
func (f *fixture) fill(client string, n int, prefix string) {
	tx, err := f.db.Begin()
	if err != nil {
		f.t.Fatal(err)
	}
	for i := range n {
		if err := f.box.Enqueue(context.Background(), tx, outbox.Notification{Client: client, Entity: fmt.Sprint("e", i), Message: deliver.Message{ID: prefix + fmt.Sprint(i), Body: []byte(`{"type":"module.updated","version":1}`)}}); err != nil {
			f.t.Fatal(err)
		}
	}
	if err := tx.Commit(); err != nil {
		f.t.Fatal(err)
	}
}
