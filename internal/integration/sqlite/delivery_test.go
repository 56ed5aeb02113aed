package sqlite_test

import (
	"testing"

	"example.com/go-webhookcfg/internal/integration/engine/sqltest"
	"example.com/go-webhookcfg/store/sqlstore"
)

func TestDeliveries(t *testing.T) {
	path := newPath(t)
	opener := func() *sqlstore.Store { return open(t, path) }
	sqltest.Deliveries(t, opener)
	sqltest.SweepsDeliveries(t, opener())
}

// TestUpgrade migrates tables in a file that other handles are using.
func TestUpgrade(t *testing.T) {
	path := newPath(t)
	statements, err := sqlstore.SQLite().Schema("")
	if err != nil {
		t.Fatal(err)
	}
	sqltest.Upgrade(t, openDB(t, path, unsynced), "wh_", statements, func() *sqlstore.Store { return newStore(t, openDB(t, path, unsynced)) })
}

// TestLost: a table is missing after an incomplete restore.
func TestLost(t *testing.T) {
	path := newPath(t)
	open(t, path)
	sqltest.Lost(t, openDB(t, path, unsynced), "wh_", func() *sqlstore.Store { return newStore(t, openDB(t, path, unsynced)) })
}
