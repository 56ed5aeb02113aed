package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/go-webhookcfg/store/sqlstore"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// TestReadOnly checks that a read-only database refuses changes and serves reads.
func TestReadOnly(t *testing.T) {
	path := newPath(t)
	s := open(t, path)
	if err := s.Apply(t.Context(), nth("c", 1)); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", "file:"+filepath.ToSlash(path)+"?mode=ro&_pragma=busy_timeout(250)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	readOnly := newStore(t, db)
	if err := readOnly.Migrate(t.Context()); err != nil {
		t.Errorf("migrating a current schema: %v", err)
	}
	for n := range 3 {
		err := readOnly.Apply(t.Context(), nth("c", n+2))
		if err == nil || errors.Is(err, sqlstore.ErrOutcomeUnknown) {
			t.Errorf("got %v", err)
		}
	}
	if hook, err := readOnly.Resolve(t.Context(), "c", "e1"); err != nil || number(hook) != 1 {
		t.Errorf("change %d is in effect: %v", number(hook), err)
	}
	if err := s.Apply(t.Context(), nth("c", 5)); err != nil {
		t.Error(err)
	}
	if hook, err := readOnly.Resolve(t.Context(), "c", "e1"); err != nil || number(hook) != 5 {
		t.Errorf("change %d is in effect: %v", number(hook), err)
	}
}

// TestFull checks that changes to a full database fail without effect, and succeed once it
// has space again.
func TestFull(t *testing.T) {
	db := openDB(t, newPath(t), fileSettings)
	db.SetMaxOpenConns(1) // the limit belongs to the connection
	s := newStore(t, db)
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	limit := func(pages int) {
		t.Helper()
		if _, err := db.ExecContext(t.Context(), fmt.Sprintf("PRAGMA max_page_count=%d", pages)); err != nil {
			t.Fatal(err)
		}
	}
	const secret = "t0ken-in-the-path"
	big := func(n int) webhookcfg.Change {
		url := egress.NewURL(fmt.Sprintf("https://hooks.example.com/%s/%d/%s", secret, n, strings.Repeat("x", 2000)))
		return webhookcfg.SetChange("c", webhookcfg.Entity(fmt.Sprint("e", n)), url)
	}
	limit(40)
	made, failed := 0, error(nil)
	for ; made < 1000 && failed == nil; made++ {
		failed = s.Apply(t.Context(), big(made))
	}
	made--
	if failed == nil || errors.Is(failed, sqlstore.ErrOutcomeUnknown) || strings.Contains(failed.Error(), secret) {
		t.Fatalf("after %d changes: %v", made, failed)
	}
	page, err := s.List(t.Context(), "c", "", 1000)
	if err != nil || len(page.Overrides) != made {
		t.Errorf("%d overrides, %d changes were made: %v", len(page.Overrides), made, err)
	}
	limit(1000)
	if err := s.Apply(t.Context(), big(made)); err != nil {
		t.Errorf("with space again: %v", err)
	}
}

// TestLocked checks calls while another process holds the write lock. Changes must end soon
// after their context, with a known outcome, and reads must succeed.
func TestLocked(t *testing.T) {
	path := newPath(t)
	s := open(t, path)
	if err := s.Apply(t.Context(), nth("c", 1)); err != nil {
		t.Fatal(err)
	}
	holder, err := openDB(t, path, fileSettings).Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Close()
	if _, err := holder.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	for n := range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		err := s.Apply(ctx, nth("c", n+2))
		cancel()
		if err == nil || errors.Is(err, sqlstore.ErrOutcomeUnknown) {
			t.Errorf("got %v", err)
		}
		if hook, err := s.Resolve(t.Context(), "c", "e1"); err != nil || number(hook) != 1 {
			t.Errorf("change %d is in effect: %v", number(hook), err)
		}
	}
	if _, err := holder.ExecContext(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if err := s.Apply(t.Context(), nth("c", 9)); err != nil {
		t.Errorf("after the lock was released: %v", err)
	}
}

// TestUnavailable checks that a store returns errors until its database can be opened.
func TestUnavailable(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "not-mounted-yet")
	s := newStore(t, openDB(t, filepath.Join(dir, "webhooks.db"), fileSettings))
	if err := callAll(t, s); err == nil {
		t.Error("every call succeeded without a database")
	}
	if err := s.Migrate(t.Context()); err == nil {
		t.Error("migrated without a database")
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := callAll(t, s); err != nil {
		t.Error(err)
	}
}
