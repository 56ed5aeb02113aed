package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/go-webhookcfg/store/sqlstore"
	"example.com/go-webhookcfg/store/storetest"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
	_ "github.com/mattn/go-sqlite3" // the driver "sqlite3"
)

// mattnSettings are the fileSettings in mattn/go-sqlite3's syntax, without fsync.
const mattnSettings = "?_busy_timeout=250&_journal_mode=WAL&_synchronous=OFF&_secure_delete=on&_txlock=immediate"

func openMattnDB(t testing.TB, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite3", "file:"+filepath.ToSlash(path)+mattnSettings)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(8)
	db.SetMaxIdleConns(8)
	return db
}

func openMattn(t testing.TB, db *sql.DB) *sqlstore.Store {
	t.Helper()
	s := newStore(t, db)
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestMattnConformance(t *testing.T) {
	var path string
	again := func(t testing.TB, _ webhookcfg.Store) webhookcfg.Store { return openMattn(t, openMattnDB(t, path)) }
	storetest.Run(t, storetest.Harness{
		Open: func(t testing.TB) webhookcfg.Store {
			path = newPath(t)
			return again(t, nil)
		},
		Reopen:   again,
		OpenPeer: again,
	})
}

// TestMattnFull: a full database refuses changes, with a known outcome.
func TestMattnFull(t *testing.T) {
	db := openMattnDB(t, newPath(t))
	db.SetMaxOpenConns(1) // the limit belongs to the connection
	s := openMattn(t, db)
	if _, err := db.ExecContext(t.Context(), "PRAGMA max_page_count=40"); err != nil {
		t.Fatal(err)
	}
	url := egress.NewURL("https://hooks.example.com/" + strings.Repeat("x", 2000))
	var failed error
	for n := 0; n < 1000 && failed == nil; n++ {
		failed = s.Apply(t.Context(), webhookcfg.SetChange("c", webhookcfg.Entity("e"+time.Unix(int64(n), 0).UTC().Format("150405")), url))
	}
	if failed == nil || errors.Is(failed, sqlstore.ErrOutcomeUnknown) {
		t.Errorf("got %v", failed)
	}
}

// TestMattnLocked: a change waits for another process that holds the write lock. It ends with
// its context, or succeeds once the lock is released.
func TestMattnLocked(t *testing.T) {
	path := newPath(t)
	s := openMattn(t, openMattnDB(t, path))
	holder, err := openMattnDB(t, path).Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Close()
	if _, err := holder.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := s.Apply(ctx, nth("c", 1)); err == nil || errors.Is(err, sqlstore.ErrOutcomeUnknown) {
		t.Errorf("got %v", err)
	}
	// The change takes longer than several busy_timeouts, so SQLITE_BUSY has to be retried.
	changed := make(chan error, 1)
	go func() { changed <- s.Apply(t.Context(), nth("c", 2)) }()
	time.AfterFunc(600*time.Millisecond, func() { _, _ = holder.ExecContext(context.Background(), "ROLLBACK") })
	if err := <-changed; err != nil {
		t.Errorf("after the lock was released: %v", err)
	}
}
