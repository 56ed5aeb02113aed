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
	"example.com/go-webhookcfg/store/storetest"
	"example.com/go-webhookcfg/webhookcfg"
)

// Engine is a database that the store is tested on. All fields but Settings are
// needed.
type Engine struct {
	Driver  string // the name under which database/sql knows the driver
	Dialect sqlstore.Dialect

	// Settings puts into a DSN what all connections are to have, such as an
	// isolation level.
	Settings func(t testing.TB, dsn string) string

	Shared    *engine.Shared                    // for tests that disturb nothing
	Dedicated func(t testing.TB) *engine.Server // for those that do

	// ReadOnly has the server refuse changes, or take them again, when they come over
	// a new connection of the DSN that AsUser makes of that of an administrator.
	ReadOnly func(t testing.TB, admin *sql.DB, on bool)
	AsUser   func(t testing.TB, admin *sql.DB, dsn string) string
}

// Run runs the tests of these names as subtests; without any, all.
func (e Engine) Run(t *testing.T, names ...string) {
	for _, test := range []struct {
		name string
		run  func(Engine, *testing.T)
	}{
		{"Conformance", Engine.conformance},
		{"Linearizable", Engine.linearizable},
		{"Broken", Engine.broken},
		{"Feed", Engine.feed},
		{"Versions", Engine.versions},
		{"Schema", Engine.schema},
		{"Sweep", Engine.sweep},
		{"LostConnections", Engine.lostConnections},
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

// replicaCount is how many processes a check pretends to be: each has connections of
// its own.
const replicaCount = 3

// open returns a handle with connections of its own.
func (e Engine) open(t testing.TB, dsn string) *sql.DB {
	t.Helper()
	if e.Settings != nil {
		dsn = e.Settings(t, dsn)
	}
	db, err := sql.Open(e.Driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(10)
	db.SetMaxIdleConns(10)
	return db
}

// prefix returns one that no other test has, and removes its tables in the end.
func prefix(t testing.TB, db *sql.DB) string {
	t.Helper()
	name := "t" + strconv.FormatUint(rand.Uint64(), 36) + "_"
	t.Cleanup(func() {
		for _, table := range []string{"schema", "client", "override"} {
			if _, err := db.Exec("DROP TABLE IF EXISTS " + name + table); err != nil {
				t.Error(err)
			}
		}
	})
	return name
}

// store returns a replica on tables that are there.
func (e Engine) store(t testing.TB, db *sql.DB, prefix string) *sqlstore.Store {
	t.Helper()
	st, err := sqlstore.New(db, e.Dialect, &sqlstore.Options{Prefix: prefix})
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// fresh returns a store on tables of its own.
func (e Engine) fresh(t testing.TB, dsn string) *sqlstore.Store {
	t.Helper()
	db := e.open(t, dsn)
	st := e.store(t, db, prefix(t, db))
	migrate(t, st)
	return st
}

// replicas returns replicas that share tables of their own.
func (e Engine) replicas(t testing.TB, dsn string) []linearizable.Store {
	t.Helper()
	db := e.open(t, dsn)
	name := prefix(t, db)
	first := e.store(t, db, name)
	migrate(t, first)
	all := []linearizable.Store{first}
	for range replicaCount - 1 {
		all = append(all, e.store(t, e.open(t, dsn), name))
	}
	return all
}

func migrate(t testing.TB, st *sqlstore.Store) {
	t.Helper()
	if err := st.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// conformance has a fresh handle for each process that a case pretends to be. Nothing
// is reopened: what a server keeps is shown by killing it.
func (e Engine) conformance(t *testing.T) {
	dsn := e.Shared.Get(t).DSN()
	var (
		db   *sql.DB
		name string
	)
	open := func(t testing.TB, db *sql.DB) webhookcfg.Store {
		st := e.store(t, db, name)
		migrate(t, st)
		if feed, err := st.WithFeed(); err == nil {
			return feed
		}
		return st
	}
	storetest.Run(t, storetest.Harness{
		Open: func(t testing.TB) webhookcfg.Store {
			db = e.open(t, dsn)
			name = prefix(t, db)
			return open(t, db)
		},
		OpenPeer: func(t testing.TB, _ webhookcfg.Store) webhookcfg.Store { return open(t, e.open(t, dsn)) },
	})
}
