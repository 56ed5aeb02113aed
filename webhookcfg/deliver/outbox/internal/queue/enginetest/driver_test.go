package enginetest

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// faults are what goes wrong with the connections of a process.
type faults struct {
	calls atomic.Int64

	mu     sync.Mutex
	isCut  bool
	takes  time.Duration                   // how long each call takes
	gate   chan struct{}                   // if set, calls wait until it's closed
	commit func() (isDone bool, err error) // if set, says what a commit does
	fails  func(query string) bool         // if set, says which queries fail
}

var errCut = errors.New("the connection is gone")

// pass lets a call go on, or not.
func (f *faults) pass(ctx context.Context) error {
	f.calls.Add(1)
	f.mu.Lock()
	gate, takes := f.gate, f.takes
	f.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if takes > 0 {
		select {
		case <-time.After(takes):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.isCut {
		return errCut
	}
	return nil
}

// cut ends all connections for ever.
func (f *faults) cut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.isCut = true
}

// freeze lets all calls wait, until the function that it returns is called.
func (f *faults) freeze() (thaw func()) {
	gate := make(chan struct{})
	f.mu.Lock()
	f.gate = gate
	f.mu.Unlock()
	return func() {
		f.mu.Lock()
		f.gate = nil
		f.mu.Unlock()
		close(gate)
	}
}

// refuse lets some queries fail.
func (f *faults) refuse(fails func(query string) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fails = fails
}

// refuses reports whether a query fails.
func (f *faults) refuses(query string) bool {
	f.mu.Lock()
	fails := f.fails
	f.mu.Unlock()
	return fails != nil && fails(query)
}

// connector opens connections with faults.
type connector struct {
	driver  driver.Driver
	dsn     string
	faults  *faults
	writing chan struct{}
}

func (c connector) Driver() driver.Driver { return c.driver }

func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	if err := c.faults.pass(context.WithoutCancel(ctx)); err != nil {
		return nil, err
	}
	conn, err := c.driver.Open(c.dsn)
	if err != nil {
		return nil, err
	}
	return &faultyConn{Conn: conn, faults: c.faults, writing: c.writing}, nil
}

// faultyConn is a connection with faults. In virtual time, nobody may wait for SQLite's lock, so those that
// write take turns before it.
type faultyConn struct {
	driver.Conn
	faults  *faults
	writing chan struct{} // has an element while somebody writes
	inTx    bool
}

// pass lets a call go on, or not. Outside of a transaction it goes on however late that is, as that of a
// process does that was stopped. A transaction ends with its context.
func (c *faultyConn) pass(ctx context.Context) error {
	if !c.inTx {
		ctx = context.WithoutCancel(ctx)
	}
	return c.faults.pass(ctx)
}

// lock waits for a turn to write.
func (c *faultyConn) lock(ctx context.Context) error {
	select {
	case c.writing <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *faultyConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if err := c.pass(ctx); err != nil {
		return nil, err
	}
	if !c.inTx {
		if err := c.lock(ctx); err != nil {
			return nil, err
		}
		defer func() { <-c.writing }()
	}
	return c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
}

func (c *faultyConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if err := c.pass(ctx); err != nil {
		return nil, err
	}
	if c.faults.refuses(query) {
		return nil, errCut
	}
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
}

func (c *faultyConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	if err := c.pass(ctx); err != nil {
		return nil, err
	}
	if err := c.lock(ctx); err != nil {
		return nil, err
	}
	tx, err := c.Conn.(driver.ConnBeginTx).BeginTx(ctx, opts)
	if err != nil {
		<-c.writing
		return nil, err
	}
	c.inTx = true
	return faultyTx{tx, c}, nil
}

type faultyTx struct {
	driver.Tx
	conn *faultyConn
}

func (t faultyTx) Commit() error {
	defer t.end()
	f := t.conn.faults
	err := f.pass(context.Background())
	f.mu.Lock()
	commit := f.commit
	f.mu.Unlock()
	isDone := err == nil
	if isDone && commit != nil {
		isDone, err = commit()
	}
	if !isDone {
		return errors.Join(err, t.Tx.Rollback())
	}
	return errors.Join(err, t.Tx.Commit())
}

func (t faultyTx) Rollback() error {
	defer t.end()
	return t.Tx.Rollback()
}

func (t faultyTx) end() {
	t.conn.inTx = false
	<-t.conn.writing
}

// openWith opens a database whose connections have faults. All that write to a file share a channel of
// one element.
func openWith(dsn string, f *faults, writing chan struct{}) (*sql.DB, error) {
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	return sql.OpenDB(connector{db.Driver(), dsn, f, writing}), nil
}
