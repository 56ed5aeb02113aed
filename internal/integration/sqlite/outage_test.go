package sqlite_test

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"testing"

	"example.com/go-webhookcfg/internal/integration/outage"
	"example.com/go-webhookcfg/store/sqlstore"
)

func execute(t *testing.T, db interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}, statement string,
) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

// TestOutages runs the handler on a database that fails for a while.
func TestOutages(t *testing.T) {
	path := newPath(t)
	db := openDB(t, path, fileSettings)
	db.SetMaxOpenConns(1) // query_only belongs to the connection
	s := newStore(t, db)
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	holder, err := openDB(t, path, fileSettings).Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = holder.Close() })
	for name, o := range map[string]outage.Outage{
		"locked by another process": {
			Start:  func() { execute(t, holder, "BEGIN IMMEDIATE") },
			End:    func() { execute(t, holder, "ROLLBACK") },
			Hangs:  true,
			Serves: true,
		},
		"read-only": {
			Start:  func() { execute(t, db, "PRAGMA query_only = 1") },
			End:    func() { execute(t, db, "PRAGMA query_only = 0") },
			Cause:  "(8)", // SQLITE_READONLY
			Serves: true,
		},
	} {
		t.Run(name, func(t *testing.T) { outage.New(t, s).Survives(o) })
	}
}

// TestOtherSchema checks that the handler serves no request until the file and its tables
// exist, or while the tables have a later version. Another process can change that.
func TestOtherSchema(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "not-mounted-yet")
	path := filepath.Join(dir, "webhooks.db")
	s := outage.New(t, newStore(t, openDB(t, path, fileSettings)))
	s.Refuses(outage.Outage{Cause: "(14)"}) // SQLITE_CANTOPEN
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	s.Refuses(outage.Outage{Cause: "tables are missing"})
	open(t, path)
	s.Works()
	other := openDB(t, path, fileSettings)
	execute(t, other, "UPDATE wh_schema SET version = version + 1")
	s = outage.New(t, newStore(t, openDB(t, path, fileSettings)))
	s.Refuses(outage.Outage{Cause: sqlstore.ErrNewerSchema.Error()})
	execute(t, other, "UPDATE wh_schema SET version = version - 1")
	s.Works()
}
