package queue

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"strings"

	"example.com/go-webhookcfg/internal/dialect"
	"example.com/go-webhookcfg/store/sqlstore"
)

// Tables are those of the queue in a database.
type Tables struct {
	db     *sql.DB
	engine *engine
	prefix string
}

// NewTables returns the tables with a prefix in a database.
func NewTables(db *sql.DB, d sqlstore.Dialect, prefix string) (*Tables, error) {
	e, err := engineOf(d)
	if err != nil {
		return nil, err
	}
	return &Tables{db, e, prefix}, nil
}

// WithClock returns the tables with another expression for the time, so that tests can set it.
func (t *Tables) WithClock(now string) *Tables {
	e := *t.engine
	e.Now = now
	return &Tables{t.db, &e, t.prefix}
}

// Create creates the tables.
func (t *Tables) Create(ctx context.Context) error {
	text, err := schemas.ReadFile(t.engine.file)
	if err != nil {
		return err
	}
	for _, statement := range dialect.Schema(string(text), t.prefix) {
		if _, err := t.db.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// conn is a database or a transaction.
type conn interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// exec runs the statement of a template. It returns how many rows that has changed.
func (t *Tables) exec(ctx context.Context, c conn, template string, v dialect.Values) (rows int64, err error) {
	s := t.engine.Compile(template, t.prefix+"outbox_")
	result, err := c.ExecContext(ctx, s.Text, s.Args(v)...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// query runs the statement of a template, and calls scan for each row.
func (t *Tables) query(ctx context.Context, c conn, template string, v dialect.Values, scan func(*sql.Rows) error) error {
	s := t.engine.Compile(template, t.prefix+"outbox_")
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

// transaction calls change in a transaction. Its first statement should write, so that SQLite
// takes its lock with it.
func (t *Tables) transaction(ctx context.Context, change func(tx *sql.Tx) error) error {
	tx, err := t.db.BeginTx(ctx, nil)
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
