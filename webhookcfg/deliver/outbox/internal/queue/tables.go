package queue

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"example.com/go-webhookcfg/internal/dialect"
	"example.com/go-webhookcfg/store/sqlstore"
)

// Tables are those of the queue in a database.
type Tables struct {
	// DB is the database, Engine what kind of database it is, and Prefix starts the tables' names.
	DB     *sql.DB
	Engine *Engine
	Prefix string

	statements sync.Map // by their templates
	known      atomic.Int64
}

// NewTables returns the tables with a prefix in a database.
func NewTables(db *sql.DB, d sqlstore.Dialect, prefix string) (*Tables, error) {
	e, err := EngineOf(d)
	if err != nil {
		return nil, err
	}
	return &Tables{DB: db, Engine: e, Prefix: prefix}, nil
}

// WithClock returns the tables with another expression for the time, so that tests can set it.
func (t *Tables) WithClock(now string) *Tables {
	e := *t.Engine
	e.Now = now
	return &Tables{DB: t.DB, Engine: &e, Prefix: t.Prefix}
}

// Conn is a database or a transaction. See [sql.Tx].
type Conn interface {
	// ExecContext is that of [sql.Tx].
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	// QueryContext is that of [sql.Tx].
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// maxStatements is how many statements are remembered. Those of questions come in many kinds.
const maxStatements = 1000

// Statement returns the statement of a template, in which {message} is a table.
func (t *Tables) Statement(template string) dialect.Statement {
	if known, ok := t.statements.Load(template); ok {
		return known.(dialect.Statement)
	}
	s := t.Engine.Compile(template, t.Prefix+"outbox_")
	if t.known.Add(1) <= maxStatements {
		t.statements.Store(template, s)
	}
	return s
}

// Exec runs the statement of a template. It returns how many rows that has changed.
func (t *Tables) Exec(ctx context.Context, c Conn, template string, v dialect.Values) (rows int64, err error) {
	s := t.Statement(template)
	result, err := c.ExecContext(ctx, s.Text, s.Args(v)...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// Query runs the statement of a template, and calls scan for each row.
func (t *Tables) Query(ctx context.Context, c Conn, template string, v dialect.Values, scan func(*sql.Rows) error) error {
	s := t.Statement(template)
	rows, err := c.QueryContext(ctx, s.Text, s.Args(v)...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Transaction calls change in a transaction. Its first statement should write, so that SQLite
// takes its lock with it.
func (t *Tables) Transaction(ctx context.Context, change func(tx *sql.Tx) error) error {
	tx, err := t.DB.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := change(tx); err != nil {
		if failed := tx.Rollback(); !errors.Is(failed, sql.ErrTxDone) {
			err = errors.Join(err, failed)
		}
		return err
	}
	return tx.Commit()
}

// list adds arguments to values, and returns the list of their parameters. Their number is a power
// of two, so that drivers needn't prepare many different statements.
func list(args []string, v dialect.Values) string {
	var params []string
	for i := 0; i < len(args) || i&(i-1) != 0; i++ {
		name := "in" + strconv.Itoa(i)
		v[name] = []byte(args[min(i, len(args)-1)])
		params = append(params, "@"+name)
	}
	return strings.Join(params, ",")
}
