package outbox_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/go-sql-driver/mysql"
)

// wire is a connector whose calls of the database can fail.
type wire struct {
	driver driver.Driver
	dsn    string

	mu sync.Mutex
	// hook is asked before each call. An error before means that the call doesn't reach the
	// database, and an error after that it does, and that its response is lost.
	hook func(c call) (before, after error)

	rewrite func(text string) string // if set, changes each statement
}

func (w *wire) text(statement string) string {
	if w.rewrite == nil {
		return statement
	}
	return w.rewrite(statement)
}

// call is a call of the database.
type call struct {
	// kind is the text of the statement without what differs from call to call. That of a
	// COMMIT has the kind of the last statement.
	kind string
	text string
	args []driver.NamedValue
	// writes says that the call can have an effect.
	writes bool
	// ends says that the call ends some time, also if the database hangs.
	ends bool
}

// wired opens the database of a fixture through a wire.
func (f *fixture) wired(hook func(c call) (before, after error)) (*sql.DB, *wire) {
	w := &wire{driver: f.db.Driver(), dsn: f.dsn, hook: hook}
	db := sql.OpenDB(w)
	db.SetMaxOpenConns(8)
	db.SetMaxIdleConns(8)
	f.t.Cleanup(func() { _ = db.Close() })
	return db, w
}

func (w *wire) Connect(context.Context) (driver.Conn, error) {
	c, err := w.driver.Open(w.dsn)
	if err != nil {
		return nil, err
	}
	return &wireConn{Conn: c, wire: w}, nil
}

func (w *wire) Driver() driver.Driver { return w.driver }

func (w *wire) do(ctx context.Context, c call, do func() error) error {
	_, c.ends = ctx.Deadline()
	w.mu.Lock()
	hook := w.hook
	w.mu.Unlock()
	var before, after error
	if hook != nil {
		before, after = hook(c)
	}
	if before != nil {
		return before
	}
	if err := do(); err != nil {
		return err
	}
	return after
}

var (
	prefixPattern = regexp.MustCompile(`\bt\d+_outbox_`)
	listPattern   = regexp.MustCompile(`(IN|VALUES) \([$?\d]+(,[^)]*)?\)(,\([^)]*\))*`)
	numberPattern = regexp.MustCompile(`\b\d{5,}\b`)
	spacePattern  = regexp.MustCompile(`\s+`)
)

func callOf(text string, args []driver.NamedValue) call {
	kind := prefixPattern.ReplaceAllString(text, "")
	kind = listPattern.ReplaceAllString(kind, "$1 …")
	kind = numberPattern.ReplaceAllString(kind, "n")
	kind = strings.TrimSpace(spacePattern.ReplaceAllString(kind, " "))
	verb, _, _ := strings.Cut(kind, " ")
	return call{kind: kind, text: text, args: args, writes: verb != "SELECT" && verb != "WITH" || strings.Contains(kind, " SET ")}
}

type wireConn struct {
	driver.Conn
	wire *wire
	last string // kind of the last statement
}

func (c *wireConn) BeginTx(ctx context.Context, opts driver.TxOptions) (tx driver.Tx, err error) {
	err = c.wire.do(ctx, call{kind: "BEGIN"}, func() error {
		tx, err = c.Conn.(driver.ConnBeginTx).BeginTx(ctx, opts)
		return err
	})
	return &wireTx{tx, c, ctx}, err
}

func (c *wireConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (r driver.Result, err error) {
	if c.prepares(args) {
		return nil, driver.ErrSkip
	}
	query = c.wire.text(query)
	return c.exec(ctx, query, args, func() (driver.Result, error) {
		return c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
	})
}

func (c *wireConn) exec(ctx context.Context, query string, args []driver.NamedValue, do func() (driver.Result, error)) (r driver.Result, err error) {
	of := callOf(query, args)
	c.last = of.kind
	err = c.wire.do(ctx, of, func() error {
		r, err = do()
		return err
	})
	return r, err
}

func (c *wireConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if c.prepares(args) {
		return nil, driver.ErrSkip
	}
	query = c.wire.text(query)
	return c.query(ctx, query, args, func() (driver.Rows, error) {
		return c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
	})
}

func (c *wireConn) query(ctx context.Context, query string, args []driver.NamedValue, do func() (driver.Rows, error)) (r driver.Rows, err error) {
	of := callOf(query, args)
	c.last = of.kind
	err = c.wire.do(ctx, of, func() error {
		r, err = do()
		return err
	})
	if err != nil && r != nil {
		_ = r.Close()
	}
	return r, err
}

// prepares reports whether the driver wants a statement to be prepared first.
func (c *wireConn) prepares(args []driver.NamedValue) bool {
	_, ok := c.wire.driver.(*mysql.MySQLDriver)
	return ok && len(args) > 0
}

// PrepareContext is for drivers that prepare what has arguments.
func (c *wireConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	s, err := c.Conn.(driver.ConnPrepareContext).PrepareContext(ctx, c.wire.text(query))
	if err != nil {
		return nil, err
	}
	return &wireStmt{s, c, query}, nil
}

// IsValid implements [driver.Validator].
func (c *wireConn) IsValid() bool {
	v, ok := c.Conn.(driver.Validator)
	return !ok || v.IsValid()
}

// ResetSession implements [driver.SessionResetter].
func (c *wireConn) ResetSession(ctx context.Context) error {
	if r, ok := c.Conn.(driver.SessionResetter); ok {
		return r.ResetSession(ctx)
	}
	return nil
}

type wireStmt struct {
	driver.Stmt
	conn *wireConn
	text string
}

func (s *wireStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	return s.conn.exec(ctx, s.text, args, func() (driver.Result, error) {
		return s.Stmt.(driver.StmtExecContext).ExecContext(ctx, args)
	})
}

func (s *wireStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return s.conn.query(ctx, s.text, args, func() (driver.Rows, error) {
		return s.Stmt.(driver.StmtQueryContext).QueryContext(ctx, args)
	})
}

type wireTx struct {
	driver.Tx
	conn *wireConn
	ctx  context.Context // of BeginTx
}

func (t *wireTx) Commit() error {
	committed := false
	err := t.conn.wire.do(t.ctx, call{kind: "COMMIT after " + t.conn.last, writes: true}, func() error {
		committed = true
		return t.Tx.Commit()
	})
	if !committed {
		_ = t.Tx.Rollback()
	}
	return err
}

var errKilled = errors.New("killed")

// TestKinds: the statements of one kind, and only those, have one name.
func TestKinds(t *testing.T) {
	for text, want := range map[string]string{
		"SELECT client FROM t12_outbox_line\n WHERE owner = 0 AND client IN ($1,$2,$3)": "SELECT client FROM line WHERE owner = 0 AND client IN …",
		"INSERT IGNORE INTO t1_outbox_line (a) VALUES (?,0,123456,''),(?,0,123456,'')":  "INSERT IGNORE INTO line (a) VALUES …",
		"DELETE FROM t1_outbox_message WHERE seq IN (5)":                                "DELETE FROM message WHERE seq IN …",
		"UPDATE t1_outbox_line SET owner = 1234567 WHERE client = ?":                    "UPDATE line SET owner = n WHERE client = ?",
	} {
		if got := callOf(text, nil).kind; got != want {
			t.Errorf("the kind of %q is %q, want %q", text, got, want)
		}
	}
}
