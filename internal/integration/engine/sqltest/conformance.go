package sqltest

import (
	"database/sql"
	"testing"

	"example.com/go-webhookcfg/store/storetest"
	"example.com/go-webhookcfg/webhookcfg"
)

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
		Another: func(t testing.TB, _ webhookcfg.Store) webhookcfg.Store { return open(t, e.open(t, dsn)) },
	})
}
