package queue

import (
	"context"
	"database/sql"

	"example.com/go-webhookcfg/internal/dialect"
)

// mark is an entity whose webhook was set or unset, or all of a client if that's "". N tells it from
// later ones.
type mark struct {
	client, entity string
	n              int64
}

// maxMarks is how many marks of a client a process looks at a time. The others follow.
const maxMarks = 1000

// mark says that a webhook was set or unset, so whoever has the client's line looks at what waits. A
// client without a line has nothing that was ever looked at.
func (t *Tables) mark(ctx context.Context, client, entity string) error {
	v := dialect.Values{"client": []byte(client), "entity": []byte(entity)}
	rows, err := t.Exec(ctx, t.DB, `UPDATE {mark} SET n = n + 1 WHERE client = @client AND entity = @entity`, v)
	if err == nil && rows == 0 {
		_, err = t.Exec(ctx, t.DB, t.Engine.InsertOnce+` INTO {mark} (client, entity, n) SELECT client, @entity, 1 FROM {line} WHERE client = @client`+t.Engine.IfNew("client, entity"), v)
	}
	if err == nil {
		err = t.Wake(ctx, t.DB, client)
	}
	return err
}

// Wake makes a client's line due, whoever has it.
func (t *Tables) Wake(ctx context.Context, c Conn, client string) error {
	_, err := t.Exec(ctx, c, `UPDATE {line} SET due = CASE WHEN owner <> 0 THEN `+t.Engine.least+`(due, 0) WHEN due > {now} THEN {now} ELSE due END WHERE client = @client`,
		dialect.Values{"client": []byte(client)})
	return err
}

// marks returns the marks of clients that a process has. It first writes that it looks at them, so
// those that come later are seen later.
func (t *Tables) marks(ctx context.Context, me int64, clients []string) (all []mark, err error) {
	v := dialect.Values{"me": me, "never": int64(never), "limit": maxMarks}
	in := list(clients, v)
	if _, err := t.Exec(ctx, t.DB, `UPDATE {line} SET due = @never WHERE owner = @me AND due = 0 AND client IN (`+in+`)`, v); err != nil {
		return nil, err
	}
	all, err = t.readMarks(ctx, `client IN (`+in+`)`, v)
	if err != nil || len(all) < maxMarks || len(clients) == 1 {
		return all, err
	}
	all = nil // so that nobody's marks keep others' from being read
	for _, client := range clients {
		v["client"] = []byte(client)
		found, err := t.readMarks(ctx, `client = @client`, v)
		if all = append(all, found...); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (t *Tables) readMarks(ctx context.Context, condition string, v dialect.Values) (all []mark, err error) {
	err = t.Query(ctx, t.DB, `SELECT client, entity, n FROM {mark} WHERE `+condition+` ORDER BY client, entity LIMIT @limit`, v, func(rows *sql.Rows) error {
		var m mark
		var client, entity []byte
		err := rows.Scan(&client, &entity, &m.n)
		m.client, m.entity = string(client), string(entity)
		all = append(all, m)
		return err
	})
	return all, err
}

// unmark removes a mark, unless the webhook was set again since.
func (t *Tables) unmark(ctx context.Context, tx Conn, m mark) error {
	_, err := t.Exec(ctx, tx, `DELETE FROM {mark} WHERE client = @client AND entity = @entity AND n = @n`,
		dialect.Values{"client": []byte(m.client), "entity": []byte(m.entity), "n": m.n})
	return err
}
