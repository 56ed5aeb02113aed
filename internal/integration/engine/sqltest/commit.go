package sqltest

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"testing"

	"example.com/go-webhookcfg/store/sqlstore"
)

// CommitError is a way to make a server return an error for a commit.
type CommitError struct {
	Name string
	// Before is executed before the change, AtCommit before its commit is sent, During while
	// the commit waits, and After afterwards, all on another connection. You can use {prefix}
	// for the prefix of the tables, and {session} for the result of Engine.Session on the
	// change's connection.
	Before, AtCommit, During, After []string
	// Waits is a query for how many sessions wait in the commit. During needs it.
	Waits string
	// Settings is executed on the change's connection before its commit is sent.
	Settings string
	// Text is a part of the change's error.
	Text string
	// Refused says that the error proves that the change wasn't applied.
	Refused bool
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
	other := another(t, admin)
	run := func(statements []string, session string) error {
		for _, statement := range statements {
			if _, err := other.ExecContext(t.Context(), strings.NewReplacer("{prefix}", name, "{session}", session).Replace(statement)); err != nil {
				return fmt.Errorf("%s: %w", statement, err)
			}
		}
		return nil
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(run(test.Before, ""))
	commits, session, during := 0, "", make(chan error, 1)
	st := e.store(t, e.openHooked(t, dsn, func(id string) (settings string) {
		if commits++; commits > 1 {
			return ""
		}
		session = id
		must(run(test.AtCommit, session))
		go func() {
			during <- errors.Join(test.await(t.Context(), admin, id, true), run(test.During, id))
		}()
		return test.Settings
	}), name)
	outcome := st.Apply(t.Context(), changesOf("acme")[kind])
	if commits == 0 {
		t.Fatalf("change %d: no commit was sent: %v", kind, outcome)
	}
	must(<-during)
	must(test.await(t.Context(), admin, session, false)) // a session can live longer than its connection
	must(run(test.After, ""))
	after, err := direct.List(t.Context(), "acme", "", 10)
	if err != nil {
		t.Fatal(err)
	}
	if err := checkOutcome(outcome, before, wanted, after); err != nil {
		t.Errorf("change %d: %v", kind, err)
	}
	switch unknown := errors.Is(outcome, sqlstore.ErrOutcomeUnknown); {
	case outcome == nil || !samePage(after, before):
		t.Errorf("change %d took effect: %v", kind, outcome)
	case unknown == test.Refused || !strings.Contains(outcome.Error(), test.Text):
		t.Errorf("change %d: %v", kind, outcome)
	}
}

// another takes a connection and closes it when the test ends, which also releases its locks.
func another(t *testing.T, db *sql.DB) *sql.Conn {
	t.Helper()
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Raw(func(any) error { return driver.ErrBadConn }) })
	return conn
}

// await returns when a session waits in its commit, or, if wanted is false, when it no longer
// does. Without During it returns at once.
func (e CommitError) await(ctx context.Context, admin *sql.DB, session string, wanted bool) error {
	if len(e.During) == 0 {
		return nil
	}
	for waiting := !wanted; waiting != wanted; {
		if err := admin.QueryRowContext(ctx, strings.ReplaceAll(e.Waits, "{session}", session)).Scan(&waiting); err != nil {
			return err
		}
	}
	return nil
}

// openHooked opens a pool. Before a connection sends a commit, it calls hook with the id of
// its session, and executes the settings that hook returns.
func (e Engine) openHooked(t *testing.T, dsn string, hook func(session string) (settings string)) *sql.DB {
	t.Helper()
	db := sql.OpenDB(hookedConnector{e.Open(t, dsn).Driver(), dsn, e.Session, hook})
	t.Cleanup(func() { _ = db.Close() })
	return db
}

type hookedConnector struct {
	driver  driver.Driver
	dsn     string
	session string
	hook    func(session string) (settings string)
}

// Driver implements [driver.Connector].
func (c hookedConnector) Driver() driver.Driver { return c.driver }

// Connect implements [driver.Connector].
func (c hookedConnector) Connect(context.Context) (driver.Conn, error) {
	conn, err := c.driver.Open(c.dsn)
	if err != nil {
		return nil, err
	}
	return hookedConn{conn.(fullConn), c}, nil
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
	connector hookedConnector
}

// ExecContext implements [driver.ExecerContext].
func (c hookedConn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	if text == "commit" {
		session, err := c.session(ctx)
		if err != nil {
			return nil, err
		}
		if settings := c.connector.hook(session); settings != "" {
			if _, err := c.fullConn.ExecContext(ctx, settings, nil); err != nil {
				return nil, err
			}
		}
	}
	return c.fullConn.ExecContext(ctx, text, args)
}

func (c hookedConn) session(ctx context.Context) (string, error) {
	rows, err := c.QueryContext(ctx, c.connector.session, nil)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	row := make([]driver.Value, 1)
	if err := rows.Next(row); err != nil {
		return "", err
	}
	if text, ok := row[0].([]byte); ok {
		return string(text), nil
	}
	return fmt.Sprint(row[0]), nil
}
