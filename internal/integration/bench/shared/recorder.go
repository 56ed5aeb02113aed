package main

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"

	"example.com/go-webhookcfg/store/sqlstore"
)

// recorder is a driver that notes the statements it is given, and finds nothing.
type recorder struct{ noted []statement }

// statement is what a store sent, with the values of its parameters.
type statement struct {
	text string
	args []any
}

// record returns what a store sends to its database while it is used.
func record(dialect sqlstore.Dialect, prefix string, use func(*sqlstore.Store) error) ([]statement, error) {
	var r recorder
	db := sql.OpenDB(&r)
	defer db.Close()
	st, err := sqlstore.New(db, dialect, &sqlstore.Options{Prefix: prefix})
	if err != nil {
		return nil, err
	}
	err = use(st)
	return r.noted, err
}

func (r *recorder) note(text string, args []driver.NamedValue) {
	s := statement{text: text}
	for _, arg := range args {
		s.args = append(s.args, arg.Value)
	}
	r.noted = append(r.noted, s)
}

var errNotNoted = errors.New("this way of using a database is not noted")

// Connect implements [driver.Connector].
func (r *recorder) Connect(context.Context) (driver.Conn, error) { return recorded{r}, nil }

// Driver implements [driver.Connector].
func (r *recorder) Driver() driver.Driver { return r }

// Open implements [driver.Driver].
func (r *recorder) Open(string) (driver.Conn, error) { return recorded{r}, nil }

type recorded struct{ recorder *recorder }

func (c recorded) ExecContext(_ context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	c.recorder.note(text, args)
	return driver.RowsAffected(1), nil
}

func (c recorded) QueryContext(_ context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	c.recorder.note(text, args)
	return nothing{}, nil
}

func (recorded) Prepare(string) (driver.Stmt, error) { return nil, errNotNoted }
func (recorded) Begin() (driver.Tx, error)           { return nil, errNotNoted }
func (recorded) Close() error                        { return nil }

// nothing is an answer without rows.
type nothing struct{}

func (nothing) Columns() []string         { return nil }
func (nothing) Next([]driver.Value) error { return io.EOF }
func (nothing) Close() error              { return nil }
