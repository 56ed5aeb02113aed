package sqlite_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/go-webhookcfg/store/sqlstore"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"modernc.org/sqlite"
)

// TestMigrateConcurrently migrates with twelve handles, as replicas do. Some start before the
// file exists.
func TestMigrateConcurrently(t *testing.T) {
	for range 10 {
		path := newPath(t)
		var group sync.WaitGroup
		for range 12 {
			s := newStore(t, openDB(t, path, unsynced))
			group.Go(func() {
				if err := s.Migrate(t.Context()); err != nil {
					t.Error(err)
					return
				}
				if err := s.Apply(t.Context(), nth("c", 1)); err != nil {
					t.Errorf("after Migrate: %v", err)
				}
			})
		}
		group.Wait()
	}
}

// TestMigrateKeepsData checks that you can call Migrate twice, or run the statements of
// Schema yourself, without changing anything.
func TestMigrateKeepsData(t *testing.T) {
	path := newPath(t)
	s, db := open(t, path), openDB(t, path, unsynced)
	if err := s.Apply(t.Context(), nth("c", 7)); err != nil {
		t.Fatal(err)
	}
	cursor, err := s.Changes(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	all, err := sqlstore.SQLite().Schema("")
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range all {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if hook, err := s.Resolve(t.Context(), "c", "e1"); err != nil || number(hook) != 7 {
		t.Errorf("got change %d: %v", number(hook), err)
	}
	if changes, err := s.Changes(t.Context(), cursor.Next); err != nil || changes.Reset || len(changes.Clients) > 0 {
		t.Errorf("got %v: %v", changes, err)
	}
}

// TestHalfMigrated checks that Migrate completes an interrupted migration, and that calls
// fail until then.
func TestHalfMigrated(t *testing.T) {
	all, err := sqlstore.SQLite().Schema("")
	if err != nil {
		t.Fatal(err)
	}
	for made := range all {
		db := openDB(t, newPath(t), unsynced)
		for _, statement := range all[:made] {
			if _, err := db.ExecContext(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
		s := newStore(t, db)
		if err := callAll(t, s); err == nil || strings.Count(err.Error(), "sqlstore: ") != 11 {
			t.Errorf("after %d statements not every call failed: %v", made, err)
		}
		if err := s.Migrate(t.Context()); err != nil {
			t.Errorf("after %d statements: %v", made, err)
		}
		if err := callAll(t, s); err != nil {
			t.Errorf("migrated after %d statements: %v", made, err)
		}
	}
}

// callAll calls every method once, and joins the errors.
func callAll(t *testing.T, s *sqlstore.Store) error {
	t.Helper()
	ctx := t.Context()
	errs := []error{s.Apply(ctx, nth("c", 1)), s.Apply(ctx, nth("c", 3))}
	_, err := s.Resolve(ctx, "c", "e1")
	errs = append(errs, err)
	_, err = s.List(ctx, "c", "", 10)
	errs = append(errs, err)
	_, err = s.Versions(ctx, []string{"c"})
	errs = append(errs, err)
	_, err = s.Changes(ctx, "")
	errs = append(errs, err)
	_, err = s.LoadDelivery(ctx, "c", webhookcfg.All())
	errs = append(errs, err, s.SaveDelivery(ctx, "c", webhookcfg.Entity("e1"), deliver.Record{LastSuccess: time.Now()}))
	_, err = s.ListClients(ctx, "", 10)
	errs = append(errs, err, s.Erase(ctx, "c"))
	_, err = s.Sweep(ctx, 10)
	for _, err := range append(errs, err) {
		if errors.Is(err, sqlstore.ErrOutcomeUnknown) {
			t.Errorf("unexpected unknown outcome: %v", err)
		}
	}
	return errors.Join(append(errs, err)...)
}

// TestSchemaFiles checks that another tool can create the tables from the files, and run each
// file again, also for a store that is already open.
func TestSchemaFiles(t *testing.T) {
	db := openDB(t, newPath(t), unsynced)
	s := newStore(t, db)
	if err := callAll(t, s); err == nil || strings.Count(err.Error(), "sqlstore: ") != 11 {
		t.Errorf("without tables not every call failed: %v", err)
	}
	files, err := filepath.Glob(filepath.FromSlash("../../../store/sqlstore/schema/sqlite/*.sql"))
	if err != nil || len(files) == 0 {
		t.Fatal("no files: ", err)
	}
	for range 2 {
		for _, name := range files {
			file, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := db.ExecContext(t.Context(), string(file)); err != nil {
				t.Fatal(err)
			}
		}
		for _, s := range []*sqlstore.Store{s, newStore(t, db)} {
			if err := callAll(t, s); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestTablesOfAnotherDialect checks that a store refuses tables that another dialect created.
func TestTablesOfAnotherDialect(t *testing.T) {
	db := openDB(t, newPath(t), unsynced)
	for _, statement := range []string{
		"CREATE TABLE wh_schema (id INT PRIMARY KEY, version INT)", "INSERT INTO wh_schema VALUES (1, 3)",
		"CREATE TABLE wh_client (id INT)", "CREATE TABLE wh_override (client INT)", "CREATE TABLE wh_delivery (client INT)",
	} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	if err := newStore(t, db).Migrate(t.Context()); err == nil || !strings.Contains(err.Error(), "no such column: origin") {
		t.Errorf("got %v", err)
	}
	path := newPath(t)
	open(t, path)
	for _, dialect := range []sqlstore.Dialect{sqlstore.PostgreSQL(), sqlstore.MySQL()} {
		s, err := sqlstore.New(openDB(t, path, unsynced), dialect, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := callAll(t, s); err == nil || strings.Count(err.Error(), "sqlstore: ") != 11 {
			t.Errorf("with the dialect %s not every call failed: %v", dialect, err)
		}
	}
}

// TestPrefixes checks that two stores in one database don't see each other.
func TestPrefixes(t *testing.T) {
	db := openDB(t, newPath(t), unsynced)
	for n, prefix := range []string{"a_", "b_"} {
		s, err := sqlstore.New(db, sqlstore.SQLite(), &sqlstore.Options{Prefix: prefix})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		hook, err := s.Resolve(t.Context(), "c", "e1")
		if err != nil || number(hook) != 0 {
			t.Errorf("%s has change %d: %v", prefix, number(hook), err)
		}
		if err := s.Apply(t.Context(), nth("c", n+1)); err != nil {
			t.Error(err)
		}
	}
}

// spy opens connections that record their statements.
type spy struct {
	path string

	mu    sync.Mutex
	texts []string
}

// Connect implements [driver.Connector].
func (s *spy) Connect(context.Context) (driver.Conn, error) {
	conn, err := s.Driver().Open("file:" + filepath.ToSlash(s.path) + fileSettings)
	if err != nil {
		return nil, err
	}
	return &spiedConn{conn.(realConn), s}, nil
}

// Driver implements [driver.Connector].
func (s *spy) Driver() driver.Driver { return new(sqlite.Driver) }

func (s *spy) note(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.texts, text) {
		s.texts = append(s.texts, text)
	}
}

// realConn lists the interfaces of the driver's connections.
type realConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ExecerContext
	driver.QueryerContext
}

type spiedConn struct {
	realConn
	spy *spy
}

func (c *spiedConn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	c.spy.note(text)
	return c.realConn.ExecContext(ctx, text, args)
}

func (c *spiedConn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	c.spy.note(text)
	return c.realConn.QueryContext(ctx, text, args)
}

// TestPlans checks that no statement scans a table. So its cost doesn't depend on the number
// of rows, even if most of them are void.
func TestPlans(t *testing.T) {
	watcher := &spy{path: newPath(t)}
	db := sql.OpenDB(watcher)
	t.Cleanup(func() { _ = db.Close() })
	s := newStore(t, db)
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	fillVoid(t, db, "c", 3, 5000)
	watcher.texts = nil
	if err := callAll(t, s); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Sweep(t.Context(), 2000); err != nil {
		t.Fatal(err)
	}
	if len(watcher.texts) < 10 {
		t.Fatalf("only %d statements: %q", len(watcher.texts), watcher.texts)
	}
	plain := openDB(t, watcher.path, unsynced)
	for _, text := range watcher.texts {
		if scan := scans(t, plain, text); scan != "" {
			t.Errorf("%s: in %s", scan, text)
		}
	}
	if scans(t, plain, "SELECT COUNT(*) FROM wh_override WHERE entity = 'e1'") == "" {
		t.Error("a scan is not detected")
	}
}

// bounded lists the sources that a plan can scan: sub-selects with a limit, and a row of
// constants.
var bounded = []string{"p", "q", "CONSTANT"}

// scans returns a line of the plan that scans a table, or "" if there is none.
func scans(t *testing.T, db *sql.DB, text string) string {
	t.Helper()
	args := make([]any, strings.Count(text, "?"))
	rows, err := db.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+text, args...)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id, parent, unused int
		var detail string
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
			t.Fatal(err)
		}
		if words := strings.Fields(detail); words[0] == "SCAN" && !slices.Contains(bounded, words[1]) {
			return detail
		}
	}
	return ""
}
