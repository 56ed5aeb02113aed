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
}

var errCut = errors.New("the connection is gone")

// pass lets a call go on, or not.
func (f *faults) pass() error {
	f.calls.Add(1)
	f.mu.Lock()
	gate, takes := f.gate, f.takes
	f.mu.Unlock()
	if gate != nil {
		<-gate
	}
	if takes > 0 {
		time.Sleep(takes)
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

// connector opens connections with faults.
type connector struct {
	driver driver.Driver
	dsn    string
	faults *faults
}

func (c connector) Driver() driver.Driver { return c.driver }

func (c connector) Connect(context.Context) (driver.Conn, error) {
	if err := c.faults.pass(); err != nil {
		return nil, err
	}
	conn, err := c.driver.Open(c.dsn)
	if err != nil {
		return nil, err
	}
	return faultyConn{conn, c.faults}, nil
}

type faultyConn struct {
	driver.Conn
	faults *faults
}

func (c faultyConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if err := c.faults.pass(); err != nil {
		return nil, err
	}
	return c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
}

func (c faultyConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if err := c.faults.pass(); err != nil {
		return nil, err
	}
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
}

func (c faultyConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	if err := c.faults.pass(); err != nil {
		return nil, err
	}
	tx, err := c.Conn.(driver.ConnBeginTx).BeginTx(ctx, opts)
	return faultyTx{tx, c.faults}, err
}

type faultyTx struct {
	driver.Tx
	faults *faults
}

func (t faultyTx) Commit() error {
	err := t.faults.pass()
	t.faults.mu.Lock()
	commit := t.faults.commit
	t.faults.mu.Unlock()
	isDone := err == nil
	if isDone && commit != nil {
		isDone, err = commit()
	}
	if !isDone {
		return errors.Join(err, t.Tx.Rollback())
	}
	return errors.Join(err, t.Tx.Commit())
}

// openWith opens a database whose connections have faults.
func openWith(dsn string, f *faults) (*sql.DB, error) {
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	return sql.OpenDB(connector{db.Driver(), dsn, f}), nil
}
