package outbox_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"example.com/go-webhookcfg/webhookcfg/deliver/outbox"
	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
)

// conflicts are errors with which a database rolls back a transaction that would succeed
// another time.
var conflicts = map[string][]error{
	"SQLite":     {errors.New("database is locked (5) (SQLITE_BUSY)")},
	"PostgreSQL": {&pgconn.PgError{Code: "40001", Message: "could not serialize access"}, &pgconn.PgError{Code: "40P01", Message: "deadlock detected"}},
	"MariaDB":    {&mysql.MySQLError{Number: 1213, Message: "Deadlock found"}, &mysql.MySQLError{Number: 1205, Message: "Lock wait timeout exceeded"}},
}

// TestConflicts: one statement in four fails as if it had met another transaction, also COMMIT.
// Everything is sent, and nothing twice.
func TestConflicts(t *testing.T) {
	t.Parallel()
	var all together
	for _, e := range engines {
		all.start(t, e.name, func(t *testing.T) {
			const n = 300
			f := newFixture(t, e, nil, nil)
			f.set("a", "/")
			f.set("b", "/")
			var injected atomic.Int64
			for range 2 {
				db, _ := f.wired(func(c call) (before, after error) {
					if c.kind != "BEGIN" && rand.IntN(4) == 0 {
						injected.Add(1)
						return conflicts[e.name][rand.IntN(len(conflicts[e.name]))], nil
					}
					return nil, nil
				})
				f.runBox(f.peer(e, db, outbox.Options{}))
			}
			for i := range n {
				f.enqueue([]string{"a", "b"}[i%2], fmt.Sprint("e", i), fmt.Sprint("m", i))
			}
			f.await(n, time.Minute)
			f.awaitEnds(outbox.Delivered, n)
			t.Logf("%d errors; %d arrivals", injected.Load(), f.arrived())
			if got := f.arrived(); got != n || injected.Load() == 0 {
				t.Errorf("%d arrivals, want %d, with %d errors", got, n, injected.Load())
			}
		})
	}
	all.wait()
}

// TestSerializable runs hosts and processes in transactions that are serializable by default.
// A host repeats its transaction if it fails, as it must anyway.
func TestSerializable(t *testing.T) {
	t.Parallel()
	dsn := map[string]string{"PostgreSQL": "&default_transaction_isolation=serializable", "MariaDB": "&tx_isolation=%27SERIALIZABLE%27"}
	var all together
	for _, e := range engines[1:] {
		get := e.dsn
		e.dsn = func(t testing.TB) string { return get(t) + dsn[e.name] }
		all.start(t, e.name, func(t *testing.T) {
			const hosts, each = 4, 100
			f := newFixture(t, e, nil, nil)
			f.set("a", "/")
			f.set("b", "/")
			f.runBox(f.peer(e, open(t, e.driver, f.dsn), outbox.Options{}))
			f.runBox(f.peer(e, open(t, e.driver, f.dsn), outbox.Options{}))
			var repeated atomic.Int64
			var running together
			for h := range hosts {
				running.start(t, fmt.Sprint("host ", h), func(t *testing.T) {
					for i := range each {
						for f.enqueueOne([]string{"a", "b"}[i%2], fmt.Sprint("h", h, "m", i)) != nil {
							repeated.Add(1)
						}
					}
				})
			}
			running.wait()
			f.await(hosts*each, time.Minute)
			f.awaitEnds(outbox.Delivered, hosts*each)
			t.Logf("%d of %d transactions of hosts were repeated; %d arrivals", repeated.Load(), hosts*each, f.arrived())
			if f.arrived() != hosts*each {
				t.Errorf("%d arrivals, want %d", f.arrived(), hosts*each)
			}
			if repeated.Load() > 20*hosts*each {
				t.Errorf("hosts repeated %d transactions", repeated.Load())
			}
		})
	}
	all.wait()
}

// TestEnqueueAfterRead: with the documented settings, a transaction can read before it enqueues,
// although others would like to write in between.
func TestEnqueueAfterRead(t *testing.T) {
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			if dsn := e.dsn; e.name == "SQLite" {
				e.dsn = func(t testing.TB) string { return dsn(t) + "&_txlock=immediate" }
			}
			f := newFixture(t, e, nil, nil)
			tx := f.begin()
			defer func() { _ = tx.Rollback() }()
			var n int
			if err := tx.QueryRow("SELECT COUNT(*) FROM " + f.prefix + "outbox_message").Scan(&n); err != nil {
				t.Fatal(err)
			}
			t.Log("another transaction meanwhile:", f.enqueueOne("b", "m"))
			if err := f.box.Enqueue(t.Context(), tx, notification("a", "e", "m")); err != nil {
				t.Fatal(err)
			}
			if err := tx.Commit(); err != nil {
				t.Error(err)
			}
		})
	}
}

// enqueueOne enqueues a notification in a transaction of its own.
func (f *fixture) enqueueOne(client, id string) error {
	tx, err := f.db.Begin()
	if err != nil {
		return err
	}
	if err := f.box.Enqueue(context.Background(), tx, notification(client, id, id)); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// TestBusy: a transaction of the host keeps SQLite's lock beyond the lease. No attempt starts
// once another process could have the clients, and nothing arrives twice.
func TestBusy(t *testing.T) {
	t.Parallel()
	e := engines[0]
	const n = 400
	f := newFixture(t, e, nil, nil)
	f.respond = func(http.ResponseWriter, *http.Request) { time.Sleep(20 * time.Millisecond) }
	f.set("a", "/")
	f.fill("a", n, "m")
	f.runBox(f.peer(e, open(t, e.driver, f.dsn), outbox.Options{}))
	f.runBox(f.peer(e, open(t, e.driver, f.dsn), outbox.Options{}))
	f.await(50, 20*time.Second)
	tx := f.begin()
	for _, err := tx.Exec("CREATE TABLE long (n integer)"); err != nil; _, err = tx.Exec("CREATE TABLE long (n integer)") {
		if !strings.Contains(err.Error(), "locked") {
			t.Fatal(err)
		}
		_ = tx.Rollback()
		tx = f.begin()
	}
	time.Sleep(5 * time.Second)
	before := f.arrived()
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	f.await(n, 30*time.Second)
	f.awaitEnds(outbox.Delivered, n)
	t.Logf("%d of %d arrived before the lock was released, %d altogether", before, n, f.arrived())
	if f.arrived() != n {
		t.Errorf("%d arrivals, want %d", f.arrived(), n)
	}
}

func (f *fixture) begin() *sql.Tx {
	tx, err := f.db.Begin()
	if err != nil {
		f.t.Fatal(err)
	}
	return tx
}
