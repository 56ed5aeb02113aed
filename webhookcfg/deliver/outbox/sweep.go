package outbox

import (
	"context"
	"database/sql"
	"strconv"
	"strings"
	"time"
)

const (
	// A process sweeps soon after it has started, in case it never runs for long, and then
	// every few minutes, a batch at a time.
	sweepFirst = 2 * time.Second
	sweepEvery = 5 * time.Minute
	sweepWait  = 100 * time.Millisecond // between batches
)

// sweepAll removes ended notifications until ctx ends.
func (p *process) sweepAll(ctx context.Context) {
	for next := sweepFirst; wait(ctx, jitter(next)); next = sweepEvery {
		p.warn(ctx, "can't remove old notifications", p.queue.sweep(ctx, &p.options))
	}
}

// remove500 deletes the notifications that a statement finds in a state, unless they have left
// that state meanwhile.
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
	_, err = exec(ctx, t.db, t.compile(`DELETE FROM {message} WHERE `+isOneOf(seqs)), v)
	return len(seqs), err
}

// isOneOf is a condition for notifications with some numbers that are still in @state. The sum
// keeps PostgreSQL from using the index of the states: while its statistics are old, it may
// think that few are in this one.
func isOneOf(seqs []string) string {
	return `state + 0 = @state AND seq IN (` + strings.Join(seqs, ",") + `)`
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
		age, keep := o.KeepFor, o.KeepPerClient
		if state == stateDelivered {
			age, keep = o.KeepDelivered, o.KeepDeliveredPerClient
		}
		v := values{"state": state, "client": []byte{}, "age": max(age, 0).Microseconds(), "keep": keep}
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
	return t.forgetResends(ctx)
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
