package sqltest

import (
	"database/sql"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"example.com/go-webhookcfg/internal/integration/engine"
	"example.com/go-webhookcfg/internal/integration/linearizable"
	"example.com/go-webhookcfg/store/sqlstore"
)

// Engine is a database and a driver to test the store on. You can leave out fields that none
// of your tests needs.
type Engine struct {
	Open    func(t testing.TB, dsn string) *sql.DB // see Driver
	Dialect sqlstore.Dialect
	// Direct opens connections that must not fail while others do. If it's nil, Open does.
	Direct func(t testing.TB, dsn string) *sql.DB
	// Late says that a call on a silent connection doesn't end with its context, but when the
	// driver gives up.
	Late bool
	// OneKind makes tests that lose or delay a part of a change use one kind of change.
	// That's enough for another driver, because all kinds use it in the same way.
	OneKind bool

	Shared    func(t testing.TB) *engine.Server // for tests that don't disturb the server
	Unsynced  func(t testing.TB) *engine.Server // for tests that disturb it and don't need fsync
	Dedicated func(t testing.TB) *engine.Server // for the other tests

	// ReadOnly makes the server refuse changes, or accept them again. It applies to new
	// connections with the DSN that AsUser makes from an administrator's DSN.
	ReadOnly func(t testing.TB, admin *sql.DB, on bool)
	AsUser   func(t testing.TB, admin *sql.DB, dsn string) string

	// Denied returns the DSN of a user who can only read and write the given tables.
	Denied func(t testing.TB, admin *sql.DB, dsn string, tables []string) string

	// These are error codes. NoWrites is for a change while the server is read-only, and
	// NoPrivilege for a table that the user has no privilege for.
	NoWrites, NoPrivilege string

	Running      string // the query for the number of other sessions' statements about {prefix}client
	Waiting      string // the query for the number of statements about {prefix}delivery that wait for a row
	CommitErrors []CommitError
	Limit        Trigger
}

// Run runs the tests with the given names as subtests, or all tests if you give none.
func (e Engine) Run(t *testing.T, names ...string) {
	for _, test := range []struct {
		name string
		run  func(Engine, *testing.T)
	}{
		{"Values", Engine.values},
		{"Statements", Engine.statements},
		{"Concurrency", Engine.concurrency},
		{"Durability", Engine.durability},
		{"Linearizable", Engine.linearizable},
		{"Feed", Engine.feed},
		{"Versions", Engine.versions},
		{"Schema", Engine.schema},
		{"Upgrade", Engine.upgrade},
		{"Lost", Engine.lost},
		{"Deliveries", Engine.deliveries},
		{"Sweep", Engine.sweep},
		{"Erase", Engine.erase},
		{"Limit", Engine.limit},
		{"LimitOfPlan", Engine.limitOfPlan},
		{"LimitReads", Engine.limitReads},
		{"Fairness", Engine.fairness},
		{"LostConnections", Engine.lostConnections},
		{"LostInHistories", Engine.lostInHistories},
		{"CommitErrors", Engine.commitErrors},
		{"Overtaking", Engine.overtaking},
		{"Crashes", Engine.crashes},
		{"Outages", Engine.outages},
	} {
		if len(names) > 0 && !slices.Contains(names, test.name) {
			continue
		}
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.run(e, t)
		})
	}
}

// replicaCount is how many replicas a check simulates. Each has its own connections.
const replicaCount = 3

// PoolSize is how many connections each pool has.
const PoolSize = 10

// Driver returns a function that opens a pool of a database/sql driver. The pool is closed
// when the test ends. Each setting changes the DSN.
func Driver(name string, settings ...func(t testing.TB, dsn string) string) func(t testing.TB, dsn string) *sql.DB {
	return func(t testing.TB, dsn string) *sql.DB {
		t.Helper()
		for _, set := range settings {
			dsn = set(t, dsn)
		}
		db, err := sql.Open(name, dsn)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		db.SetMaxOpenConns(PoolSize)
		db.SetMaxIdleConns(PoolSize)
		return db
	}
}

// prefix returns a unique table prefix. Its tables are dropped when the test ends.
func prefix(t testing.TB, db *sql.DB) string {
	t.Helper()
	name := "t" + strconv.FormatUint(rand.Uint64(), 36) + "_"
	t.Cleanup(func() {
		if _, err := db.Exec("DROP VIEW IF EXISTS " + name + "webhook"); err != nil {
			t.Error(err)
		}
		for _, table := range []string{"schema", "client", "override", "delivery"} {
			if _, err := db.Exec("DROP TABLE IF EXISTS " + name + table); err != nil {
				t.Error(err)
			}
		}
	})
	return name
}

// direct opens connections that must not fail while others do.
func (e Engine) direct(t testing.TB, dsn string) *sql.DB {
	t.Helper()
	if e.Direct != nil {
		return e.Direct(t, dsn)
	}
	return e.Open(t, dsn)
}

// store returns a store on existing tables.
func (e Engine) store(t testing.TB, db *sql.DB, prefix string) *sqlstore.Store {
	t.Helper()
	st, err := sqlstore.New(db, e.Dialect, &sqlstore.Options{Prefix: prefix})
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// fresh returns a store on new tables.
func (e Engine) fresh(t testing.TB, dsn string) *sqlstore.Store {
	t.Helper()
	db := e.Open(t, dsn)
	st := e.store(t, db, prefix(t, db))
	migrate(t, st)
	return st
}

// replicas returns stores that share new tables.
func (e Engine) replicas(t testing.TB, dsn string) []linearizable.Store {
	t.Helper()
	db := e.Open(t, dsn)
	name := prefix(t, db)
	first := e.store(t, db, name)
	migrate(t, first)
	all := []linearizable.Store{first}
	for range replicaCount - 1 {
		all = append(all, e.store(t, e.Open(t, dsn), name))
	}
	return all
}

func migrate(t testing.TB, st *sqlstore.Store) {
	t.Helper()
	if err := st.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func execute(t testing.TB, db *sql.DB, statement string, args ...any) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}
