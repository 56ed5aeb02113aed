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

// Engine is a database, used through a driver, that the store is tested on. A field that
// no test of a run needs may be zero.
type Engine struct {
	Open    func(t testing.TB, dsn string) *sql.DB // see Driver
	Dialect sqlstore.Dialect
	// Direct is Open for connections that must not fail while others do. If nil, Open is
	// used.
	Direct func(t testing.TB, dsn string) *sql.DB
	// Late specifies that a call on a silent connection ends when the driver gives up, not
	// with its context.
	Late bool
	// OneKind specifies that the tests that lose or delay a part of a change make one kind
	// of change. All kinds use a driver in the same way.
	OneKind bool

	Shared    func(t testing.TB) *engine.Server // for tests that do not disturb the server
	Unsynced  func(t testing.TB) *engine.Server // for those that do, and need no fsync
	Dedicated func(t testing.TB) *engine.Server // for the others

	// ReadOnly makes the server refuse changes, or accept them again, on new connections
	// of the DSN that AsUser derives from the DSN of an administrator.
	ReadOnly func(t testing.TB, admin *sql.DB, on bool)
	AsUser   func(t testing.TB, admin *sql.DB, dsn string) string

	// Denied returns the DSN of a user who may only read and write the given tables.
	Denied func(t testing.TB, admin *sql.DB, dsn string, tables []string) string

	// NoWrites, NoTable and NoPrivilege are the codes of the errors of a change while the
	// server is read-only, and of a statement about a table that is missing, or that the user
	// has no privilege for.
	NoWrites, NoTable, NoPrivilege string

	Session      string // the query for the id of a session
	Running      string // the query for the number of other sessions' statements about {prefix}client
	Waiting      string // the query for the number of statements about {prefix}delivery that wait for a row
	CommitErrors []CommitError
}

// Run runs the tests with the given names as subtests, or all if none is given.
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
		{"Broken", Engine.broken},
		{"Feed", Engine.feed},
		{"BrokenFeed", Engine.brokenFeed},
		{"Versions", Engine.versions},
		{"Schema", Engine.schema},
		{"Upgrade", Engine.upgrade},
		{"Deliveries", Engine.deliveries},
		{"Sweep", Engine.sweep},
		{"Erase", Engine.erase},
		{"Fairness", Engine.fairness},
		{"LostConnections", Engine.lostConnections},
		{"LostInHistories", Engine.lostInHistories},
		{"CommitErrors", Engine.commitErrors},
		{"Overtaking", Engine.overtaking},
		{"BrokenConnections", Engine.brokenConnections},
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

// replicaCount is the number of replicas that a check simulates, each with connections
// of its own.
const replicaCount = 3

// PoolSize is the number of connections of each pool.
const PoolSize = 10

// Driver returns a function that opens a pool of connections of a database/sql driver,
// which is closed when the test ends. Each setting changes the DSN.
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

// prefix returns a unique table prefix, whose tables are dropped when the test ends.
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
