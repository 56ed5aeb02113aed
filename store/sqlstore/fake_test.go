package sqlstore_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"example.com/go-webhookcfg/store/sqlstore"
)

// fake is a database. Your test decides the result of each call: "connect", "begin",
// "commit", "rollback", or the text of a statement.
type fake struct {
	on func(call string, args []driver.NamedValue) (resultRows, error)
	db *sql.DB
	// hangs says whether a statement takes until its context ends. It can be nil.
	hangs func(query string, args []driver.NamedValue) bool

	mu    sync.Mutex
	calls []string
	open  int
}

// affected is for statements that succeed: return it as the error, and the statement changes so
// many rows. Other statements change one.
type affected int64

func (a affected) Error() string { return fmt.Sprintf("%d rows", int64(a)) }

const errNoRows = affected(0)

// resultRows are the rows of a query; nil for other calls. An error in place of the first
// column ends the rows before it with that error.
type resultRows [][]driver.Value

// openFake returns a store on a fake that calls on for each call. The store has checked the
// schema and has no connection.
func openFake(t testing.TB, dialect sqlstore.Dialect, opts *sqlstore.Options, on func(call string, args []driver.NamedValue) (resultRows, error)) (*sqlstore.Store, *fake) {
	t.Helper()
	s, f := openUnchecked(t, dialect, opts, (&schema{version: current}).on)
	if err := s.Migrate(context.Background()); err != nil {
		t.Fatal(err)
	}
	f.db.SetMaxIdleConns(-1) // closes the connection
	f.db.SetMaxIdleConns(2)
	f.on, f.calls = on, nil
	return s, f
}

// openUnchecked returns a store on a fake that has sent nothing yet.
func openUnchecked(t testing.TB, dialect sqlstore.Dialect, opts *sqlstore.Options, on func(call string, args []driver.NamedValue) (resultRows, error)) (*sqlstore.Store, *fake) {
	t.Helper()
	f := &fake{on: on}
	f.db = sql.OpenDB(f)
	t.Cleanup(func() { _ = f.db.Close() })
	s, err := sqlstore.New(f.db, dialect, opts)
	if err != nil {
		t.Fatal(err)
	}
	return s, f
}

// failing handles the calls of a fake: those with a prefix fail the given number of
// times, others succeed.
func failing(prefix string, err error, times int) func(string, []driver.NamedValue) (resultRows, error) {
	var mu sync.Mutex
	return func(call string, _ []driver.NamedValue) (resultRows, error) {
		mu.Lock()
		defer mu.Unlock()
		if times > 0 && strings.HasPrefix(call, prefix) {
			times--
			return nil, err
		}
		return nil, nil
	}
}

func (f *fake) do(call string, args []driver.NamedValue) (resultRows, error) {
	call = strings.TrimSpace(call)
	f.mu.Lock()
	f.calls = append(f.calls, call)
	f.mu.Unlock()
	return f.on(call, args)
}

// count returns the number of calls with a prefix.
func (f *fake) count(prefix string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, call := range f.calls {
		if strings.HasPrefix(call, prefix) {
			n++
		}
	}
	return n
}

// shape returns the first word of every call.
func (f *fake) shape() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var words []string
	for _, call := range f.calls {
		words = append(words, strings.Fields(call)[0])
	}
	return strings.Join(words, " ")
}

// opened adds n to the number of open connections, and returns it.
func (f *fake) opened(n int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open += n
	return f.open
}

// Connect implements [driver.Connector].
func (f *fake) Connect(context.Context) (driver.Conn, error) {
	if _, err := f.do("connect", nil); err != nil {
		return nil, err
	}
	f.opened(1)
	return &fakeConn{f}, nil
}

// Driver implements [driver.Connector].
func (f *fake) Driver() driver.Driver { return nil }

type fakeConn struct{ f *fake }

func (c *fakeConn) Prepare(string) (driver.Stmt, error) { panic("statement prepared") }
func (c *fakeConn) Begin() (driver.Tx, error)           { panic("transaction without a context") }
func (c *fakeConn) Close() error                        { c.f.opened(-1); return nil }

func (c *fakeConn) BeginTx(context.Context, driver.TxOptions) (driver.Tx, error) {
	if _, err := c.f.do("begin", nil); err != nil {
		return nil, err
	}
	return fakeTx{c.f}, nil
}

func (c *fakeConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if c.f.hangs != nil && c.f.hangs(query, args) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	_, err := c.f.do(query, args)
	if n, ok := errors.AsType[affected](err); ok {
		return driver.RowsAffected(n), nil
	}
	return driver.RowsAffected(1), err
}

func (c *fakeConn) QueryContext(_ context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := c.f.do(query, args)
	if err != nil {
		return nil, err
	}
	return newFakeRows(rows), nil
}

type fakeTx struct{ f *fake }

func (t fakeTx) Commit() error   { _, err := t.f.do("commit", nil); return err }
func (t fakeTx) Rollback() error { _, err := t.f.do("rollback", nil); return err }

type fakeRows struct {
	columns []string
	rows    resultRows
}

func newFakeRows(rows resultRows) *fakeRows {
	if len(rows) == 0 {
		return new(fakeRows)
	}
	return &fakeRows{make([]string, len(rows[0])), slices.Clone(rows)}
}

func (r *fakeRows) Close() error      { return nil }
func (r *fakeRows) Columns() []string { return r.columns }

func (r *fakeRows) Next(dest []driver.Value) error {
	if len(r.rows) == 0 {
		return io.EOF
	}
	if err, ok := r.rows[0][0].(error); ok {
		return err
	}
	copy(dest, r.rows[0])
	r.rows = r.rows[1:]
	return nil
}

func dialects() []sqlstore.Dialect {
	return []sqlstore.Dialect{sqlstore.PostgreSQL(), sqlstore.MySQL(), sqlstore.SQLite()}
}

func second[T any](_ T, err error) error { return err }
