package sqltest

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"
	"testing"

	"example.com/go-webhookcfg/store/sqlstore"
)

// CommitError is a way to make a server refuse a commit, with an error that proves that it did.
type CommitError struct {
	Name string
	// Before is executed before the change, AtCommit before its commit is sent, and After
	// afterwards, all on another connection. You can use {prefix} for the prefix of the tables.
	Before, AtCommit, After string
	// Text is a part of the change's error.
	Text string
}

// commitErrors makes the commit of each kind of change fail with each error.
func (e Engine) commitErrors(t *testing.T) {
	server := e.Dedicated(t)
	server.SkipIfExternal(t)
	admin := e.Open(t, server.DSN())
	user := e.AsUser(t, admin, server.DSN())
	for _, test := range e.CommitErrors {
		t.Run(test.Name, func(t *testing.T) {
			for kind := range e.kinds() {
				e.commitError(t, admin, user, test, kind)
			}
		})
	}
}

func (e Engine) commitError(t *testing.T, admin *sql.DB, dsn string, test CommitError, kind int) {
	t.Helper()
	name := prefix(t, admin)
	direct := e.store(t, admin, name)
	migrate(t, direct)
	before, wanted, err := (&lossTest{kind: kind, direct: direct}).prepare(t.Context(), "acme", "twin")
	if err != nil {
		t.Fatal(err)
	}
	run := func(script string) {
		t.Helper()
		if script == "" {
			return
		}
		if _, err := admin.ExecContext(t.Context(), strings.ReplaceAll(script, "{prefix}", name)); err != nil {
			t.Fatal(err)
		}
	}
	run(test.Before)
	commits := 0
	db := sql.OpenDB(hookedConnector{e.Open(t, dsn).Driver(), dsn, func() {
		if commits++; commits == 1 {
			run(test.AtCommit)
		}
	}})
	t.Cleanup(func() { _ = db.Close() })
	outcome := e.store(t, db, name).Apply(t.Context(), changesOf("acme")[kind])
	if commits == 0 {
		t.Fatalf("change %d: no commit was sent: %v", kind, outcome)
	}
	run(test.After)
	after, err := direct.List(t.Context(), "acme", "", 10)
	if err != nil {
		t.Fatal(err)
	}
	if err := checkOutcome(outcome, before, wanted, after); err != nil {
		t.Errorf("change %d: %v", kind, err)
	}
	switch {
	case outcome == nil || !samePage(after, before):
		t.Errorf("change %d took effect: %v", kind, outcome)
	case errors.Is(outcome, sqlstore.ErrOutcomeUnknown) || !strings.Contains(outcome.Error(), test.Text):
		t.Errorf("change %d: %v", kind, outcome)
	}
}

// hookedConnector makes connections that call hook before they send a commit.
type hookedConnector struct {
	driver driver.Driver
	dsn    string
	hook   func()
}

// Driver implements [driver.Connector].
func (c hookedConnector) Driver() driver.Driver { return c.driver }

// Connect implements [driver.Connector].
func (c hookedConnector) Connect(context.Context) (driver.Conn, error) {
	conn, err := c.driver.Open(c.dsn)
	if err != nil {
		return nil, err
	}
	return hookedConn{conn.(fullConn), c.hook}, nil
}

// fullConn lists the interfaces that the store needs from a connection.
type fullConn interface {
	driver.Conn
	driver.ExecerContext
	driver.QueryerContext
	driver.NamedValueChecker
}

type hookedConn struct {
	fullConn
	hook func()
}

// ExecContext implements [driver.ExecerContext].
func (c hookedConn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	if text == "commit" {
		c.hook()
	}
	return c.fullConn.ExecContext(ctx, text, args)
}
