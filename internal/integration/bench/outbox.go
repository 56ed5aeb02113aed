package main

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"golang.org/x/sync/errgroup"

	"example.com/go-webhookcfg/internal/integration/engine"
	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/store/sqlstore"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/deliver/outbox"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// queueDatabase is a database for queues, with the settings of examples/service.
type queueDatabase struct {
	*sql.DB
	name       string
	dialect    sqlstore.Dialect
	dsn        string        // of PostgreSQL
	statements *atomic.Int64 // that the pool has executed; nil if nobody counts
	server     string        // number of the server's process; empty if it's this one
	prefixes   int
}

func onSQLite(t *testing.T) *queueDatabase {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "queue.db")+sqliteSettings+"&_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1)
	return &queueDatabase{DB: db, name: "SQLite", dialect: sqlstore.SQLite()}
}

func onPostgreSQL(t *testing.T) *queueDatabase {
	t.Helper()
	d := &queueDatabase{name: "PostgreSQL", dialect: sqlstore.PostgreSQL(), dsn: newDatabase(t, engine.PostgreSQL(t).DSN()), statements: new(atomic.Int64)}
	var err error
	if d.DB, err = pool(d.dsn, counter{d.statements}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	var backend string
	if err := d.QueryRow("SELECT pg_backend_pid()").Scan(&backend); err != nil {
		t.Fatal(err)
	}
	if stat := processStat(backend); len(stat) > 0 {
		d.server = stat[1]
	}
	return d
}

// pool returns a pool of connections to PostgreSQL.
func pool(dsn string, tracer pgx.QueryTracer) (*sql.DB, error) {
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	cfg.Tracer = tracer
	db := stdlib.OpenDB(*cfg)
	db.SetMaxOpenConns(poolSize)
	db.SetMaxIdleConns(poolSize)
	return db, nil
}

const poolSize = 16

// counter is a [pgx.QueryTracer] that counts statements.
type counter struct{ n *atomic.Int64 }

// TraceQueryStart implements [pgx.QueryTracer].
func (c counter) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	c.n.Add(1)
	return ctx
}

// TraceQueryEnd implements [pgx.QueryTracer].
func (counter) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// newDatabase creates a database on a PostgreSQL server, and returns its data source name.
// The database is dropped when the test ends.
func newDatabase(t *testing.T, dsn string) string {
	t.Helper()
	const name = "bench_queue"
	admin, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = admin.Close() })
	drop := func() {
		if _, err := admin.Exec("DROP DATABASE IF EXISTS " + name + " WITH (FORCE)"); err != nil {
			t.Error(err)
		}
	}
	drop()
	t.Cleanup(drop)
	if _, err := admin.Exec("CREATE DATABASE " + name); err != nil {
		t.Fatal(err)
	}
	at, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	at.Path = "/" + name
	return at.String()
}

// cpu returns how much CPU time this process and the database server have used so far. The
// server's counts if it runs on this machine, and this is Linux.
func (d *queueDatabase) cpu() time.Duration {
	used := cpuTime()
	if d.server == "" {
		return used
	}
	const tick = time.Second / 100 // USER_HZ
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range all {
		pid := filepath.Base(dir)
		stat := processStat(pid)
		if len(stat) == 0 || pid != d.server && stat[1] != d.server {
			continue
		}
		fields := stat[11:13] // its own time, in user mode and in the kernel
		if pid == d.server {
			fields = stat[11:15] // also that of children that have ended
		}
		for _, field := range fields {
			ticks, _ := strconv.Atoi(field)
			used += time.Duration(ticks) * tick
		}
	}
	return used
}

// processStat returns the fields of /proc/PID/stat from the state on. The next one is the
// parent. It returns none if there's no such process.
func processStat(pid string) []string {
	text, _ := os.ReadFile("/proc/" + pid + "/stat")
	_, after, _ := strings.Cut(string(text), ") ")
	return strings.Fields(after)
}

// queue is an outbox in tables of its own, with webhooks in memory.
type queue struct {
	*queueDatabase
	t      *testing.T
	prefix string
	box    *outbox.Outbox
	ended  atomic.Int64
	store  *store.Memory

	mu        sync.Mutex
	committed map[string]time.Time // by message
}

// queueTimeout is how long an attempt can take.
const queueTimeout = 5 * time.Second

func newQueue(t *testing.T, d *queueDatabase) *queue {
	t.Helper()
	d.prefixes++
	q := &queue{queueDatabase: d, t: t, prefix: fmt.Sprintf("q%d_", d.prefixes), store: store.NewMemory(), committed: make(map[string]time.Time)}
	var err error
	if q.box, err = newOutbox(d.DB, d.dialect, q.prefix, q.store, func(outbox.End) { q.ended.Add(1) }); err != nil {
		t.Fatal(err)
	}
	if err := q.box.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return q
}

func newOutbox(db *sql.DB, dialect sqlstore.Dialect, prefix string, webhooks deliver.Resolver, onEnd func(outbox.End)) (*outbox.Outbox, error) {
	policy := egress.Development()
	policy.Resolver = loopbackResolver{}
	sender, err := deliver.New(webhooks, oneKey{deliver.GenerateKey()}, &deliver.Options{Policy: policy, Timeout: queueTimeout})
	if err != nil {
		return nil, err
	}
	return outbox.New(db, dialect, sender, &outbox.Options{Prefix: prefix, Grace: 100 * time.Millisecond, OnEnd: onEnd})
}

// run sends what's in the queue until stop is called.
func (q *queue) run() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- q.box.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			q.t.Error(err)
		}
	})
	q.t.Cleanup(stop) // if the trial fails
	return stop
}

// set sets a client's webhook for a scope.
func (q *queue) set(client string, scope webhookcfg.Scope, webhook string) {
	q.t.Helper()
	change := webhookcfg.SetChange(client, scope, egress.NewURL(webhook))
	change.Time = time.Now().Truncate(time.Microsecond)
	if err := q.store.Apply(context.Background(), change); err != nil {
		q.t.Fatal(err)
	}
}

// inTransaction calls fn in a transaction, and commits it.
func (d *queueDatabase) inTransaction(fn func(*sql.Tx) error) error {
	tx, err := d.Begin()
	if err != nil {
		return err
	}
	if err := fn(tx); err != nil {
		_ = tx.Rollback()
		return err
	}
	return tx.Commit()
}

// enqueue enqueues a notification of a client's n-th entity in a transaction of its own.
func (q *queue) enqueue(client string, n int) error {
	err := q.inTransaction(func(tx *sql.Tx) error { return q.add(tx, client, n) })
	if err != nil {
		return err
	}
	q.mu.Lock()
	q.committed[queuedID(client, n)] = time.Now()
	q.mu.Unlock()
	q.box.Committed(client)
	return nil
}

func (q *queue) add(tx *sql.Tx, client string, n int) error {
	return q.box.Enqueue(context.Background(), tx, outbox.Notification{
		Client: client, Entity: queuedEntity(n),
		Message: deliver.Message{ID: queuedID(client, n), Body: notification},
	})
}

func queuedEntity(n int) string            { return fmt.Sprint("e", n) }
func queuedID(client string, n int) string { return fmt.Sprint(client, "_", n) }

// fill enqueues n notifications for each client, all of different entities.
func (q *queue) fill(n int, clients ...string) {
	q.t.Helper()
	var group errgroup.Group
	group.SetLimit(8)
	for _, client := range clients {
		group.Go(func() error {
			return q.inTransaction(func(tx *sql.Tx) error {
				for i := range n {
					if err := q.add(tx, client, i); err != nil {
						return err
					}
				}
				return nil
			})
		})
	}
	if err := group.Wait(); err != nil {
		q.t.Fatal(err)
	}
}

// updates returns how many versions of a notification's row there were after its INSERT, on
// average. Only PostgreSQL counts them. Nobody may use the database meanwhile.
func (q *queue) updates() string {
	if q.name != "PostgreSQL" {
		return "–"
	}
	// A connection that's idle can keep its counts for a while, but not when it's closed.
	q.SetMaxIdleConns(0)
	defer q.SetMaxIdleConns(poolSize)
	var others, inserted, updated int
	await(q.t, "the end of all other connections", func() bool {
		const count = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
		if err := q.QueryRow(count).Scan(&others); err != nil {
			q.t.Fatal(err)
		}
		return others == 0
	})
	if err := q.QueryRow("SELECT n_tup_ins, n_tup_upd FROM pg_stat_user_tables WHERE relname = $1", q.prefix+"outbox_message").Scan(&inserted, &updated); err != nil {
		q.t.Fatal(err)
	}
	return precise(float64(updated) / float64(inserted))
}

// await waits until something has happened.
func await(t *testing.T, what string, happened func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !happened(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within two minutes: %s", what)
		}
	}
}

// receivers are the receivers of all clients, on one server. The last part of a URL's path
// says what happens: /50ms responds after that time, /fail with status 500, and /hang never.
type receivers struct {
	*httptest.Server
	isDown   atomic.Bool // everything under /outage/ responds with status 503
	mu       sync.Mutex
	failed   time.Time                       // when something under /outage/ last did so
	requests map[string]map[string][]request // by client and message
}

// request is when a receiver got a request and responded.
type request struct{ from, to time.Time }

func newReceivers(t *testing.T) *receivers {
	r := &receivers{requests: make(map[string]map[string][]request)}
	r.Server = httptest.NewServer(http.HandlerFunc(r.receive))
	t.Cleanup(func() { r.CloseClientConnections(); r.Close() })
	return r
}

// named returns the server's URL with the name of a receiver.
func (r *receivers) named(name string) string {
	return strings.Replace(r.URL, "127.0.0.1", name+".example.com", 1)
}

func (r *receivers) receive(w http.ResponseWriter, req *http.Request) {
	from := time.Now()
	_, _ = io.Copy(io.Discard, req.Body)
	if r.isDown.Load() && strings.HasPrefix(req.URL.Path, "/outage/") {
		w.WriteHeader(http.StatusServiceUnavailable)
		r.mu.Lock()
		r.failed = time.Now()
		r.mu.Unlock()
		return
	}
	switch how := path.Base(req.URL.Path); how {
	case "hang":
		<-req.Context().Done()
		return
	case "fail":
		w.WriteHeader(http.StatusInternalServerError)
		return
	default:
		if wait, _ := time.ParseDuration(how); wait > 0 {
			time.Sleep(wait)
		}
	}
	id := req.Header.Get("Webhook-Id")
	client, _, _ := strings.Cut(id, "_")
	r.mu.Lock()
	if r.requests[client] == nil {
		r.requests[client] = make(map[string][]request)
	}
	r.requests[client][id] = append(r.requests[client][id], request{from, time.Now()})
	r.mu.Unlock()
	w.WriteHeader(http.StatusNoContent)
}

// count returns how many of a client's messages were delivered.
func (r *receivers) count(client string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.requests[client])
}

// await waits until n messages of each client have been delivered. It returns a client's
// requests, with those of all clients in one list.
func (r *receivers) await(t *testing.T, n int, clients ...string) (all []request) {
	t.Helper()
	for _, client := range clients {
		await(t, fmt.Sprintf("%d deliveries for %s", n, client), func() bool { return r.count(client) >= n })
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, client := range clients {
		for _, requests := range r.requests[client] {
			all = append(all, requests...)
		}
	}
	return all
}

// first returns the first of a message's requests.
func (r *receivers) first(client, id string) request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.requests[client][id][0]
}

// process is what another process of this program does: it receives or sends notifications.
type process struct {
	receives             bool
	dsn, prefix, webhook string
}

// run prints a line once it works, and returns at the end of the standard input.
func (p process) run() error {
	if p.receives {
		server := newReceiver("http")
		defer server.Close()
		fmt.Println(server.URL)
		_, err := io.Copy(io.Discard, os.Stdin)
		return err
	}
	db, err := pool(p.dsn, nil)
	if err != nil {
		return err
	}
	defer db.Close()
	box, err := newOutbox(db, sqlstore.PostgreSQL(), p.prefix, everywhere(p.webhook), nil)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() { _, _ = io.Copy(io.Discard, os.Stdin); cancel() }()
	fmt.Println("sending")
	return box.Run(ctx)
}

// everywhere is a [deliver.Resolver] with one webhook for all clients.
type everywhere string

// Resolve implements [deliver.Resolver].
func (e everywhere) Resolve(context.Context, string, string) (webhookcfg.Webhook, error) {
	return webhookcfg.Webhook{URL: egress.NewURL(string(e)), Source: webhookcfg.SourceBase, Since: time.Unix(1, 0)}, nil
}

// child is another process of this program. It ends with this one.
type child struct {
	*exec.Cmd
	line string // that it printed
}

func startChild(t *testing.T, args ...string) child {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := child{Cmd: exec.Command(program, args...)}
	c.Stderr = os.Stderr
	stdin, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stdin.Close(); _ = c.Wait() })
	if c.line, err = bufio.NewReader(stdout).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	c.line = strings.TrimSpace(c.line)
	return c
}

// lastFailure returns when the receiver that's down last responded.
func (r *receivers) lastFailure() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}
