package outbox

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"example.com/go-webhookcfg/internal/dialect"
	"example.com/go-webhookcfg/internal/healthcheck"
	"example.com/go-webhookcfg/store/sqlstore"
)

// tables is the queue in a database.
type tables struct {
	db      *sql.DB
	engine  *engine
	prefix  string
	names   []string // of the tables, that of the schema first
	queries queries
	health  healthcheck.Check
	fitted  atomic.Bool // a check has succeeded

	statements sync.Map // by the template, for fixed
}

type queries struct {
	insert                                statement
	lockJoin, join, others, renew, retire statement
	unchanged, orphans                    statement
	poll                                  statement
	fresh, waiting, body                  statement
	outcomes, giveBack, awake, savePauses statement
	forget                                statement
	wake                                  statement
}

// Never is a due time of lines that have nothing to do, and erased is that of lines that a process
// has and should forget.
const (
	never  = 1 << 61
	erased = -1
)

const (
	insertMessage = ` INTO {message} (client, entity, id, state, due, enqueued, since, attempts, status, reason, content_type, body)
VALUES (@client, @entity, @id, 0, 0, {now}, 0, 0, 0, '', @type, @body)`

	// pollLines comes after the clients with fresh notifications.
	pollLines = `
SELECT 1, client, 0, 0 FROM (SELECT client FROM {line} WHERE owner = 0 AND due <= {now} ORDER BY due LIMIT @limit) due
UNION ALL
SELECT 2, client, CASE WHEN due < 0 THEN 1 ELSE 0 END, 0 FROM (SELECT client, due FROM {line} WHERE owner = @me AND due <= {now} ORDER BY due LIMIT @limit) woken
UNION ALL
SELECT 3, f.client, COALESCE(l.owner, 0), CASE WHEN l.due <= {now} THEN 1 ELSE 0 END FROM f LEFT JOIN {line} l ON l.client = f.client WHERE f.client IS NOT NULL
UNION ALL
SELECT 4, NULL, id, beat FROM {process} WHERE id <> @me`

	columns = `seq, due, entity, id, content_type, CASE WHEN length(body) <= 4096 THEN body END, attempts,
  due - {now}, since, {now} - enqueued, enqueued FROM {message} WHERE `
)

func newTables(db *sql.DB, d sqlstore.Dialect, prefix string) (*tables, error) {
	spec, err := engineOf(d)
	if err != nil {
		return nil, err
	}
	if prefix, err = tablePrefix(prefix); err != nil {
		return nil, err
	}
	schema, err := spec.schema(prefix)
	if err != nil {
		return nil, err
	}
	t := &tables{db: db, engine: spec, prefix: prefix, names: dialect.Created(schema)}
	c := t.compile
	t.queries = queries{
		insert: c(spec.insertOnce + insertMessage + spec.ifNew("client, id")),
		// One process at a time joins, so that each sees the others.
		lockJoin: c(`UPDATE {schema} SET version = version WHERE id = 1` + spec.untilIdle),
		join:     c(`INSERT INTO {process} (id, beat, until, settings) VALUES (@me, 0, {now} + @lease, @settings)`),
		others:   c(`SELECT settings FROM {process} WHERE until >= {now} AND settings <> @settings`),
		renew: c(`UPDATE {process} SET until = {now} + @lease, beat = CASE WHEN beat < @beat THEN @beat ELSE beat END
WHERE id = @me AND beat >= @stored` + spec.untilIdle),
		retire:    c(`DELETE FROM {process} WHERE id = @me`),
		unchanged: c(`SELECT id FROM {process} WHERE id = @id AND beat = @beat` + spec.lockRows),
		orphans:   c(orphanLines),
		poll:      c(strings.ReplaceAll(spec.clients, "@state", "0") + pollLines),
		fresh:     c(`SELECT ` + columns + `client = @client AND state = 0 ORDER BY due, seq LIMIT @limit`),
		waiting:   c(`SELECT ` + columns + `client = @client AND state = 1 AND ` + spec.from() + ` ORDER BY due, seq LIMIT @limit`),
		body:      c(`SELECT body FROM {message} WHERE seq = @seq AND enqueued = @enqueued`),
		outcomes:  c(spec.outcomes),
		giveBack: c(`UPDATE {line} SET owner = 0, due = CASE WHEN due = 0 THEN {now} ELSE {now} + @due END, pauses = @pauses
WHERE client = @client AND owner = @me`),
		awake:      c(`UPDATE {line} SET due = @never, woken = 0 WHERE client = @client AND owner = @me`),
		savePauses: c(`UPDATE {line} SET pauses = @pauses WHERE client = @client AND owner = @me`),
		forget:     c(`DELETE FROM {line} WHERE client = @client AND owner = @me`),
		wake:       c(`UPDATE {line} SET woken = 1, due = CASE WHEN owner <> 0 THEN 0 WHEN due > {now} THEN {now} ELSE due END WHERE client = @client`),
	}
	return t, nil
}

// fixed is compile for a template that is used often.
func (t *tables) fixed(template string) statement {
	if known, ok := t.statements.Load(template); ok {
		return known.(statement)
	}
	s := t.compile(template)
	t.statements.Store(template, s)
	return s
}

// compile returns the statement of a template, in which {message} is a table.
func (t *tables) compile(template string) statement {
	return t.engine.Compile(template, t.prefix+"outbox_")
}

// conn is a database or a transaction.
type conn interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

func exec(ctx context.Context, db conn, s statement, v values) (rows int64, err error) {
	result, err := db.ExecContext(ctx, s.Text, s.Args(v)...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// query calls scan for each row.
func query(ctx context.Context, db conn, s statement, v values, scan func(*sql.Rows) error) error {
	rows, err := db.QueryContext(ctx, s.Text, s.Args(v)...)
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
func (t *tables) transaction(ctx context.Context, change func(tx *sql.Tx) error) error {
	tx, err := t.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := change(tx); err != nil {
		return errors.Join(err, rollback(tx))
	}
	return tx.Commit()
}

func rollback(tx *sql.Tx) error {
	if err := tx.Rollback(); !errors.Is(err, sql.ErrTxDone) {
		return err
	}
	return nil
}

func (t *tables) write(ctx context.Context, me *identity, lease time.Duration, b batch) error {
	return t.fenced(ctx, me, lease, func(tx *sql.Tx) error {
		if len(b.outcomes) > 0 {
			rows, err := json.Marshal(b.outcomes)
			if err != nil {
				return err
			}
			if _, err := exec(ctx, tx, t.queries.outcomes, values{"rows": string(rows)}); err != nil {
				return err
			}
		}
		for _, l := range b.lines {
			if err := t.update(ctx, tx, me.id, l); err != nil {
				return err
			}
		}
		return nil
	})
}

func (t *tables) update(ctx context.Context, tx *sql.Tx, me int64, l lineUpdate) error {
	pauses := ""
	if len(l.pauses) > 0 {
		text, err := json.Marshal(l.pauses)
		if err != nil {
			return err
		}
		pauses = string(text)
	}
	s := t.queries.savePauses
	switch {
	case l.forget:
		s = t.queries.forget
	case l.giveBack:
		s = t.queries.giveBack
	case l.awake:
		s = t.queries.awake
	}
	_, err := exec(ctx, tx, s, values{
		"client": []byte(l.client), "me": me, "due": min(l.due.Microseconds(), never), "pauses": pauses, "never": int64(never),
	})
	return err
}
