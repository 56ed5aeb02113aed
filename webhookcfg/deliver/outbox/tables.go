package outbox

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/go-webhookcfg/store/sqlstore"
)

// tables is the queue in a database.
type tables struct {
	db      *sql.DB
	dialect *dialect
	prefix  string
	queries queries
}

type queries struct {
	insert                                statement
	join, others, renew, retire           statement
	returnAll, expired, orphans           statement
	poll                                  statement
	fresh, waiting, body                  statement
	outcomes, giveBack, awake, savePauses statement
	wake                                  statement
}

// never is a due time of lines that have nothing to do.
const never = 1 << 61

const (
	insertMessage = ` INTO {message} (client, entity, id, state, due, enqueued, since, attempts, status, reason, content_type, body)
VALUES (@client, @entity, @id, 0, 0, {now}, 0, 0, 0, '', @type, @body)`

	// poll steps through the clients with fresh notifications by their index, so a client's
	// burst costs as much as one notification.
	pollLines = `
WITH RECURSIVE f (client, n) AS (
  SELECT * FROM (SELECT client, 1 FROM {message} WHERE state = 0 AND client > @after ORDER BY client LIMIT 1) first
  UNION ALL
  SELECT (SELECT m.client FROM {message} m WHERE m.state = 0 AND m.client > f.client ORDER BY m.client LIMIT 1), n + 1
  FROM f WHERE f.client IS NOT NULL AND n < @limit
)
SELECT 1, client, 0 FROM (SELECT client FROM {line} WHERE owner = 0 AND due <= {now} ORDER BY due LIMIT @limit) due
UNION ALL
SELECT 2, client, 0 FROM (SELECT client FROM {line} WHERE owner = @me AND due <= {now} ORDER BY due LIMIT @limit) woken
UNION ALL
SELECT 3, f.client, COALESCE(l.owner, 0) FROM f LEFT JOIN {line} l ON l.client = f.client WHERE f.client IS NOT NULL
UNION ALL
SELECT 4, NULL, id FROM {process} WHERE until < {now} AND id <> @me`

	columns = `seq, due, entity, id, content_type, CASE WHEN length(body) <= 4096 THEN body END, attempts,
  due - {now}, since, {now} - enqueued FROM {message} WHERE `
)

func newTables(db *sql.DB, d sqlstore.Dialect, prefix string) (*tables, error) {
	spec, err := dialectOf(d)
	if err != nil {
		return nil, err
	}
	if prefix, err = tablePrefix(prefix); err != nil {
		return nil, err
	}
	t := &tables{db: db, dialect: spec, prefix: prefix}
	c := func(template string) statement { return spec.compile(prefix, template) }
	t.queries = queries{
		insert:    c(spec.insertOnce + insertMessage + spec.onConflict),
		join:      c(`INSERT INTO {process} (id, until, settings) VALUES (@me, {now} + @lease, @settings)`),
		others:    c(`SELECT settings FROM {process} WHERE until >= {now} AND settings <> @settings`),
		renew:     c(`UPDATE {process} SET until = {now} + @lease WHERE id = @me`),
		retire:    c(`DELETE FROM {process} WHERE id = @me`),
		expired:   c(`SELECT id FROM {process} WHERE until < {now} AND id <> @me` + spec.lockRows),
		orphans:   c(`UPDATE {line} SET owner = 0, due = 0 WHERE owner = @me`),
		returnAll: c(`UPDATE {line} SET owner = 0, due = 0 WHERE owner = @me`),
		poll:      c(pollLines),
		fresh:     c(`SELECT ` + columns + `client = @client AND state = 0 ORDER BY due, seq LIMIT @limit`),
		waiting: c(`SELECT ` + columns + `client = @client AND state = 1 AND (due, seq) >= (@due, @seq)
ORDER BY due, seq LIMIT @limit`),
		body:     c(`SELECT body FROM {message} WHERE seq = @seq`),
		outcomes: c(spec.outcomes),
		giveBack: c(`UPDATE {line} SET owner = 0, due = CASE WHEN due = 0 THEN 0 ELSE {now} + @due END, pauses = @pauses
WHERE client = @client AND owner = @me`),
		awake:      c(`UPDATE {line} SET due = @never WHERE client = @client AND owner = @me`),
		savePauses: c(`UPDATE {line} SET pauses = @pauses WHERE client = @client AND owner = @me`),
		wake:       c(`UPDATE {line} SET due = 0 WHERE client = @client`),
	}
	return t, nil
}

func (t *tables) insert(n Notification) (string, []any) {
	s := t.queries.insert
	return s.text, s.args(values{
		"client": []byte(n.Client), "entity": []byte(n.Entity), "id": n.Message.ID,
		"type": n.Message.ContentType, "body": n.Message.Body,
	})
}

// conn is a database or a transaction.
type conn interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

func exec(ctx context.Context, db conn, s statement, v values) (rows int64, err error) {
	result, err := db.ExecContext(ctx, s.text, s.args(v)...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// query calls scan for each row.
func query(ctx context.Context, db conn, s statement, v values, scan func(*sql.Rows) error) error {
	return queryText(ctx, db, s.text, s.args(v), scan)
}

func queryText(ctx context.Context, db conn, text string, args []any, scan func(*sql.Rows) error) error {
	rows, err := db.QueryContext(ctx, text, args...)
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

// fenced calls change in a transaction of a process that still has its lines, and extends the
// lease. It locks the process's row, and whoever wants the lines of another process deletes
// its row first. So nobody else has the lines before the commit. If the lease has ended, but
// nobody has taken the lines, it's valid again.
func (t *tables) fenced(ctx context.Context, me int64, lease time.Duration, change func(tx *sql.Tx) error) error {
	return t.transaction(ctx, func(tx *sql.Tx) error {
		if err := t.extend(ctx, tx, me, lease); err != nil {
			return err
		}
		return change(tx)
	})
}

func (t *tables) extend(ctx context.Context, db conn, me int64, lease time.Duration) error {
	rows, err := exec(ctx, db, t.queries.renew, values{"me": me, "lease": lease.Microseconds()})
	if err == nil && rows == 0 {
		err = errLost
	}
	return err
}

func (t *tables) join(ctx context.Context, me int64, lease time.Duration, settings string) error {
	return t.transaction(ctx, func(tx *sql.Tx) error {
		v := values{"me": me, "lease": lease.Microseconds(), "settings": settings}
		if _, err := exec(ctx, tx, t.queries.join, v); err != nil {
			return err
		}
		return query(ctx, tx, t.queries.others, v, func(*sql.Rows) error { return errSettings })
	})
}

var errSettings = errors.New("outbox: another process with these tables has another Schedule or Order: give both the same Options, or another Prefix")

func (t *tables) renew(ctx context.Context, me int64, lease time.Duration) error {
	return t.extend(ctx, t.db, me, lease)
}

func (t *tables) leave(ctx context.Context, me int64) error {
	return t.transaction(ctx, func(tx *sql.Tx) error { return t.remove(ctx, tx, me) })
}

// remove deletes a process and makes its lines due.
func (t *tables) remove(ctx context.Context, tx *sql.Tx, id int64) error {
	if _, err := exec(ctx, tx, t.queries.retire, values{"me": id}); err != nil {
		return err
	}
	_, err := exec(ctx, tx, t.queries.orphans, values{"me": id})
	return err
}

func (t *tables) bury(ctx context.Context, me int64) (n int, err error) {
	err = t.transaction(ctx, func(tx *sql.Tx) error {
		// The first statement takes SQLite's lock.
		if _, err := exec(ctx, tx, t.queries.retire, values{"me": 0}); err != nil {
			return err
		}
		var ids []int64
		err := query(ctx, tx, t.queries.expired, values{"me": me}, func(rows *sql.Rows) error {
			var id int64
			err := rows.Scan(&id)
			ids = append(ids, id)
			return err
		})
		for _, id := range ids {
			if err == nil {
				err = t.remove(ctx, tx, id)
			}
		}
		n = len(ids)
		return err
	})
	return n, err
}

func (t *tables) poll(ctx context.Context, me int64, after string, limit int) (f found, err error) {
	steps := 0
	err = query(ctx, t.db, t.queries.poll, values{"me": me, "after": []byte(after), "limit": limit}, func(rows *sql.Rows) error {
		var kind int
		var client []byte
		var id int64
		if err := rows.Scan(&kind, &client, &id); err != nil {
			return err
		}
		switch kind {
		case 1:
			f.due = append(f.due, string(client))
		case 2:
			f.woken = append(f.woken, string(client))
		case 3:
			steps++
			f.last = string(client)
			if id == 0 || id == me {
				f.fresh = append(f.fresh, string(client))
			}
		case 4:
			f.expired = true
		}
		return nil
	})
	f.more = steps >= limit
	return f, err
}

// in returns a list of placeholders, and the arguments for it. The number of placeholders is
// a power of two, so that drivers needn't prepare many different statements.
func (t *tables) in(clients []string, before int) (list string, args []any) {
	n := placeholders(len(clients))
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		if t.dialect.numbered {
			b.WriteString("$" + strconv.Itoa(before+i+1))
		} else {
			b.WriteByte('?')
		}
		args = append(args, []byte(clients[min(i, len(clients)-1)]))
	}
	return b.String(), args
}

func placeholders(n int) int {
	m := 1
	for m < n {
		m *= 2
	}
	return m
}

// claim creates the missing lines, locks those that nobody has and takes them.
func (t *tables) claim(ctx context.Context, me int64, lease time.Duration, clients []string) (all []claimed, err error) {
	slices.Sort(clients) // against deadlocks
	err = t.fenced(ctx, me, lease, func(tx *sql.Tx) error {
		all = all[:0]
		list, args := t.in(clients, 0)
		s := t.dialect.compile(t.prefix, `SELECT client, due - {now}, pauses FROM {line} WHERE owner = 0 AND client IN (`+list+`)`+t.dialect.lockRows)
		create := t.dialect.compile(t.prefix, t.dialect.insertOnce+` INTO {line} (client, owner, due, pauses) VALUES (`+
			strings.ReplaceAll(list, ",", ",0,"+strconv.Itoa(never)+",''),(")+`,0,`+strconv.Itoa(never)+`,'')`+t.dialect.onConflict)
		if _, err := tx.ExecContext(ctx, create.text, args...); err != nil {
			return err
		}
		var names []string
		err := queryText(ctx, tx, s.text, args, func(rows *sql.Rows) error {
			var client []byte
			var left int64
			var pauses string
			if err := rows.Scan(&client, &left, &pauses); err != nil {
				return err
			}
			c := claimed{client: string(client), left: micros(left)}
			if pauses != "" {
				if err := json.Unmarshal([]byte(pauses), &c.pauses); err != nil {
					return fmt.Errorf("outbox: pauses of a line: %w", err)
				}
			}
			all, names = append(all, c), append(names, c.client)
			return nil
		})
		if err != nil || len(all) == 0 {
			return err
		}
		list, args = t.in(names, 0)
		take := t.dialect.compile(t.prefix, `UPDATE {line} SET owner = `+strconv.FormatInt(me, 10)+`, due = `+strconv.Itoa(never)+` WHERE client IN (`+list+`)`)
		_, err = tx.ExecContext(ctx, take.text, args...)
		return err
	})
	return all, err
}

// micros converts the database's microseconds. Times far away stay so.
func micros(n int64) time.Duration {
	return time.Duration(max(min(n, never/1000), -never/1000)) * time.Microsecond
}

func (t *tables) fresh(ctx context.Context, client string, limit int) ([]row, error) {
	return t.rows(ctx, t.queries.fresh, values{"client": []byte(client), "limit": limit})
}

func (t *tables) waiting(ctx context.Context, client string, from position, limit int) ([]row, error) {
	return t.rows(ctx, t.queries.waiting, values{"client": []byte(client), "due": from.due, "seq": from.seq, "limit": limit})
}

func (t *tables) rows(ctx context.Context, s statement, v values) (all []row, err error) {
	err = query(ctx, t.db, s, v, func(rows *sql.Rows) error {
		var r row
		var entity []byte
		var left, age int64
		if err := rows.Scan(&r.seq, &r.due, &entity, &r.id, &r.contentType, &r.body, &r.attempts, &left, &r.since, &age); err != nil {
			return err
		}
		r.entity, r.left, r.age = string(entity), micros(left), micros(age)
		all = append(all, r)
		return nil
	})
	return all, err
}

func (t *tables) body(ctx context.Context, seq int64) (body []byte, err error) {
	err = query(ctx, t.db, t.queries.body, values{"seq": seq}, func(rows *sql.Rows) error { return rows.Scan(&body) })
	return body, err
}

func (t *tables) write(ctx context.Context, me int64, lease time.Duration, b batch) error {
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
			if err := t.update(ctx, tx, me, l); err != nil {
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

// wake makes the line of a client due, whoever has it.
func (t *tables) wake(ctx context.Context, client string) error {
	_, err := exec(ctx, t.db, t.queries.wake, values{"client": []byte(client)})
	return err
}
