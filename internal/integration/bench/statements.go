package main

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"

	"example.com/go-webhookcfg/store/sqlstore"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// recorder is a driver that records statements, and returns no rows. It responds to the
// first query of a store, the only one without arguments, that the schema is current.
type recorder struct{ recorded []statement }

// statement is a statement of a store with its arguments.
type statement struct {
	text string
	args []any
}

// record returns the statements that a store sends while it is used.
func record(dialect sqlstore.Dialect, prefix string, use func(*sqlstore.Store) error) ([]statement, error) {
	var r recorder
	db := sql.OpenDB(&r)
	defer db.Close()
	st, err := sqlstore.New(db, dialect, &sqlstore.Options{Prefix: prefix})
	if err != nil {
		return nil, err
	}
	err = use(st)
	return r.recorded, err
}

func (r *recorder) add(text string, args []driver.NamedValue) {
	s := statement{text: text}
	for _, arg := range args {
		s.args = append(s.args, arg.Value)
	}
	r.recorded = append(r.recorded, s)
}

var errNotRecorded = errors.New("bench: method without a recorder")

// Connect implements [driver.Connector].
func (r *recorder) Connect(context.Context) (driver.Conn, error) { return recorderConn{r}, nil }

// Driver implements [driver.Connector].
func (r *recorder) Driver() driver.Driver { return r }

// Open implements [driver.Driver].
func (r *recorder) Open(string) (driver.Conn, error) { return recorderConn{r}, nil }

type recorderConn struct{ recorder *recorder }

func (c recorderConn) ExecContext(_ context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	c.recorder.add(text, args)
	return driver.RowsAffected(1), nil
}

func (c recorderConn) QueryContext(_ context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	if len(args) == 0 {
		return &schemaRow{}, nil
	}
	c.recorder.add(text, args)
	return noRows{}, nil
}

func (recorderConn) Prepare(string) (driver.Stmt, error) { return nil, errNotRecorded }
func (recorderConn) Begin() (driver.Tx, error)           { return nil, errNotRecorded }
func (recorderConn) Close() error                        { return nil }

// noRows is a result without rows.
type noRows struct{}

func (noRows) Columns() []string         { return nil }
func (noRows) Next([]driver.Value) error { return io.EOF }
func (noRows) Close() error              { return nil }

// schemaRow is the row of a schema that is current, fits the dialect, and is not on a
// standby.
type schemaRow struct{ read bool }

func (*schemaRow) Columns() []string { return []string{"version", "fit", "standby"} }

func (r *schemaRow) Next(row []driver.Value) error {
	if r.read {
		return io.EOF
	}
	r.read = true
	row[0], row[1], row[2] = int64(1), true, false
	return nil
}

func (*schemaRow) Close() error { return nil }

// replay sends the recorded statements of a store through package database/sql alone.
type replay struct {
	db     *sql.DB
	sets   []statement
	lookup statement
	turn   *sync.Mutex // held by a writer where only one can write; else nil
}

// sample is the recorded change. Its arguments are distinguished by their values.
var sample = func() webhookcfg.Change {
	c := webhookcfg.SetChange("the client", webhookcfg.Entity("the entity"), egress.NewURL("https://the.url.example.com/"))
	c.Time = since
	return c
}()

func newReplay(ctx context.Context, db *sql.DB, dialect sqlstore.Dialect, prefix string) (*replay, error) {
	sets, err := record(dialect, prefix, func(st *sqlstore.Store) error { return st.Apply(ctx, sample) })
	if err != nil {
		return nil, err
	}
	lookups, err := record(dialect, prefix, func(st *sqlstore.Store) error {
		_, err := st.Resolve(ctx, sample.Client, sample.Scope.Entity())
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(lookups) != 1 {
		return nil, fmt.Errorf("a resolve takes %d statements, want one", len(lookups))
	}
	r := &replay{db: db, sets: sets, lookup: lookups[0]}
	if dialect == sqlstore.SQLite() {
		r.turn = new(sync.Mutex)
	}
	return r, nil
}

// with returns the arguments of the statement for another change. A number that is not
// in the sample is the marker of a transaction, which is random.
func (s statement) with(c webhookcfg.Change) []any {
	args := make([]any, len(s.args))
	for i, arg := range s.args {
		switch value := arg.(type) {
		case []byte:
			args[i] = bytesWith(value, c)
		case int64:
			args[i] = rand.Int64()
			if value == sample.Time.Unix() {
				args[i] = c.Time.Unix()
			}
		default:
			args[i] = arg
		}
	}
	return args
}

func bytesWith(value []byte, c webhookcfg.Change) []byte {
	switch string(value) {
	case sample.Client:
		return []byte(c.Client)
	case sample.Scope.Entity():
		return []byte(c.Scope.Entity())
	case sample.URL.Reveal():
		return []byte(c.URL.Reveal())
	}
	return value
}

// set retries after any error, since transactions conflict.
func (r *replay) set(ctx context.Context, c webhookcfg.Change) (err error) {
	if r.turn != nil {
		r.turn.Lock()
		defer r.turn.Unlock()
	}
	for range 10 {
		if err = r.try(ctx, c); err == nil {
			return nil
		}
	}
	return err
}

func (r *replay) try(ctx context.Context, c webhookcfg.Change) error {
	conn, err := r.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	for _, s := range r.sets {
		if _, err := conn.ExecContext(ctx, s.text, s.with(c)...); err != nil {
			_, _ = conn.ExecContext(ctx, "rollback") // fails if the server did
			return err
		}
	}
	return nil
}

func (r *replay) url(ctx context.Context, client, entity string) (string, error) {
	key := webhookcfg.SetChange(client, webhookcfg.Entity(entity), egress.URL{})
	rows, err := r.db.QueryContext(ctx, r.lookup.text, r.lookup.with(key)...)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	var (
		standby                bool
		base, override         []byte
		since, overriddenSince sql.NullInt64
	)
	for rows.Next() {
		if err := rows.Scan(&standby, &base, &since, &override, &overriddenSince); err != nil {
			return "", err
		}
	}
	if overriddenSince.Valid {
		return string(override), rows.Err()
	}
	return string(base), rows.Err()
}
