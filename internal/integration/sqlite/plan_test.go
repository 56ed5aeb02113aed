package sqlite_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"modernc.org/sqlite"
)

// spy opens connections that note the statements which they are given.
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

// realConn is what the driver's connections can do.
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

// TestPlans: no statement reads a table from end to end, so that its cost does not
// depend on how many rows there are, void ones included.
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
	if err := everything(t, s); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Sweep(t.Context(), 2000); err != nil {
		t.Fatal(err)
	}
	if len(watcher.texts) < 10 {
		t.Fatalf("saw only %q", watcher.texts)
	}
	plain := openDB(t, watcher.path, hurried)
	for _, text := range watcher.texts {
		if scan := scans(t, plain, text); scan != "" {
			t.Errorf("%s: in %s", scan, text)
		}
	}
	if scans(t, plain, "SELECT COUNT(*) FROM wh_override WHERE entity = 'e1'") == "" {
		t.Error("a scan is not noticed")
	}
}

// bounded are what a plan may read from end to end: sub-selects with a limit, and
// a row of constants.
var bounded = []string{"p", "q", "CONSTANT"}

// scans returns a line of the plan that reads a whole table, "" if none does.
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
