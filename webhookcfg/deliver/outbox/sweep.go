package outbox

import (
	"context"
	"database/sql"
	"strconv"
	"strings"
	"time"
)

const (
	// A process sweeps every few minutes, a batch at a time.
	sweepEvery = 5 * time.Minute
	sweepWait  = 100 * time.Millisecond // between batches
)

// sweepAll removes ended notifications until ctx ends.
func (p *process) sweepAll(ctx context.Context) {
	for wait(ctx, jitter(sweepEvery)) {
		p.warn(ctx, "can't remove old notifications", p.queue.sweep(ctx, &p.options))
	}
}

// remove500 deletes the notifications that a statement finds.
func (t *tables) remove500(ctx context.Context, find statement, v values) (int, error) {
	var seqs []string
	err := query(ctx, t.db, find, v, func(rows *sql.Rows) error {
		var seq int64
		err := rows.Scan(&seq)
		seqs = append(seqs, strconv.FormatInt(seq, 10))
		return err
	})
	if err != nil || len(seqs) == 0 {
		return 0, err
	}
	s := t.compile(`DELETE FROM {message} WHERE seq IN (` + strings.Join(seqs, ",") + `)`)
	_, err = t.db.ExecContext(ctx, s.Text)
	return len(seqs), err
}

// sweep removes notifications that ended too long ago, and those beyond a client's number, in
// batches with pauses, client by client.
func (t *tables) sweep(ctx context.Context, o *Options) error {
	next := t.compile(listNextClient)
	old := t.compile(`
SELECT seq FROM {message} WHERE state = @state AND client = @client AND due < {now} - @age ORDER BY due LIMIT 500`)
	bound := t.compile(`
SELECT due FROM {message} WHERE state = @state AND client = @client ORDER BY due DESC LIMIT 1 OFFSET @keep`)
	many := t.compile(`
SELECT seq FROM {message} WHERE state = @state AND client = @client AND due <= @due ORDER BY due LIMIT 500`)
	for state := stateDelivered; state <= stateDropped; state++ {
		v := values{"state": state, "client": []byte{}, "age": max(o.KeepFor, 0).Microseconds(), "keep": o.KeepPerClient}
		for {
			var client []byte
			if err := query(ctx, t.db, next, v, func(rows *sql.Rows) error { return rows.Scan(&client) }); err != nil {
				return err
			}
			if client == nil {
				break
			}
			v["client"] = client
			if err := t.removeAll(ctx, old, v); err != nil {
				return err
			}
			var due int64
			if err := query(ctx, t.db, bound, v, func(rows *sql.Rows) error { return rows.Scan(&due) }); err != nil {
				return err
			}
			if v["due"] = due; due > 0 {
				if err := t.removeAll(ctx, many, v); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (t *tables) removeAll(ctx context.Context, find statement, v values) error {
	for {
		n, err := t.remove500(ctx, find, v)
		if err != nil || n == 0 {
			return err
		}
		if !wait(ctx, sweepWait) {
			return ctx.Err()
		}
	}
}
