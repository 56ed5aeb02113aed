package sqlite_test

import (
	"database/sql"
	"testing"

	"example.com/go-webhookcfg/internal/integration/engine/sqltest"
	"example.com/go-webhookcfg/store/sqlstore"
)

func TestErase(t *testing.T) {
	for name, test := range map[string]func(*testing.T, *sql.DB, string, *sqlstore.Store){
		"reader that was away": sqltest.Erase, "followers": sqltest.Follow, "clients": sqltest.Clients, "view": sqltest.View,
	} {
		t.Run(name, func(t *testing.T) {
			path := newPath(t)
			test(t, openDB(t, path, unsynced), "wh_", open(t, path))
		})
	}
}
