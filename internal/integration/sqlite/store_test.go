package sqlite_test

import (
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/go-webhookcfg/internal/integration/linearizable"
	"example.com/go-webhookcfg/store/sqlstore"
	"example.com/go-webhookcfg/store/storetest"
	"example.com/go-webhookcfg/webhookcfg"
	_ "modernc.org/sqlite" // the driver "sqlite"
)

// fileSettings are the settings that sqlstore's documentation asks for.
const fileSettings = "?_pragma=busy_timeout(250)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=secure_delete(ON)&_txlock=immediate"

// unsynced are settings for tests without crashes. No write waits for the disk.
var unsynced = strings.Replace(fileSettings, "synchronous(FULL)", "synchronous(OFF)", 1)

func newPath(t testing.TB) string { return filepath.Join(t.TempDir(), "webhooks.db") }

// openFile keeps all its connections idle, because a new connection has to read the schema
// again.
func openFile(path, settings string) (*sql.DB, error) {
	db, err := sql.Open("sqlite", "file:"+filepath.ToSlash(path)+settings)
	if err == nil {
		db.SetMaxOpenConns(8)
		db.SetMaxIdleConns(8)
	}
	return db, err
}

// openDB opens the file at path and closes it when the test ends.
func openDB(t testing.TB, path, settings string) *sql.DB {
	t.Helper()
	db, err := openFile(path, settings)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func newStore(t testing.TB, db *sql.DB) *sqlstore.Store {
	t.Helper()
	s, err := sqlstore.New(db, sqlstore.SQLite(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// open opens the store at path without fsync, and migrates it.
func open(t testing.TB, path string) *sqlstore.Store { return openWith(t, path, unsynced) }

func openWith(t testing.TB, path, settings string) *sqlstore.Store {
	t.Helper()
	s := newStore(t, openDB(t, path, settings))
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestConformance(t *testing.T) {
	var path string
	storetest.Run(t, storetest.Harness{
		Open: func(t testing.TB) webhookcfg.Store {
			path = newPath(t)
			return open(t, path)
		},
		Reopen: func(t testing.TB, _ webhookcfg.Store) webhookcfg.Store { return open(t, path) },
		Crash: func(t testing.TB, _ webhookcfg.Store) webhookcfg.Store {
			from := path
			path = newPath(t)
			for _, end := range []string{"", "-wal"} {
				written, err := os.ReadFile(from + end)
				if end != "" && errors.Is(err, fs.ErrNotExist) {
					continue // the last connection was closed
				}
				if err == nil {
					err = os.WriteFile(path+end, written, 0o600)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			return open(t, path)
		},
		OpenPeer: func(t testing.TB, _ webhookcfg.Store) webhookcfg.Store { return open(t, path) },
	})
}

// TestLinearizable runs histories on two handles of one file, as two processes would.
func TestLinearizable(t *testing.T) {
	// They are shorter than the defaults, because changes are slower than in memory.
	hot, spread := linearizable.Hot(), linearizable.Spread()
	hot.Histories, spread.Histories = 20, 8
	for name, workload := range map[string]linearizable.Workload{"hot": hot, "spread": spread} {
		t.Run(name, func(t *testing.T) {
			linearizable.Check(t, workload, func(t testing.TB) []linearizable.Store {
				path := newPath(t)
				return []linearizable.Store{open(t, path), open(t, path)}
			})
		})
	}
}
