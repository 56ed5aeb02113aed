package sqlite_test

import (
	"errors"
	"testing"

	"example.com/go-webhookcfg/internal/integration/engine/sqltest"
	"example.com/go-webhookcfg/store/sqlstore"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// TestLimit: concurrent changes of several processes never exceed the limit of the trigger.
func TestLimit(t *testing.T) {
	path := newPath(t)
	db := openDB(t, path, unsynced)
	stores := []*sqlstore.Store{open(t, path), open(t, path), newStore(t, db)}
	sqltest.Limit(t, db, "wh_", stores, sqltest.Trigger{File: "sqlite.sql", Refused: func(err error) bool {
		e, ok := errors.AsType[*sqlite.Error](err)
		return ok && e.Code() == sqlite3.SQLITE_CONSTRAINT_TRIGGER
	}})
}
