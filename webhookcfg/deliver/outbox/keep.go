package outbox

import (
	"cmp"
	"context"
	"database/sql"
	"strconv"
	"strings"
	"time"

	"example.com/go-webhookcfg/webhookcfg/deliver/outbox/internal/queue"
)

const (
	// A process sweeps soon after it has started, in case it never runs for long, and then
	// every few minutes, a batch at a time.
	sweepFirst = 2 * time.Second
	sweepEvery = 5 * time.Minute
	sweepWait  = 100 * time.Millisecond // between batches
	// sweepClients and sweepRows are how many clients a statement looks at, and how many rows at
	// most to find the oldest that each may keep. On SQLite, everybody waits meanwhile.
	sweepClients = 200
	sweepRows    = 50_000
)

// sweepAll removes ended notifications until ctx ends.
func (o *Outbox) sweepAll(ctx context.Context, _ int64) {
	for next := sweepFirst; queue.Wait(ctx, queue.Jitter(next)); next = sweepEvery {
		o.warn(ctx, "can't remove old notifications", o.tables.sweep(ctx, &o.options))
	}
}

// remove500 deletes the notifications that a statement finds in a state, unless they have left
// that state meanwhile. So it can find more than it deletes.
func (t *tables) remove500(ctx context.Context, find string, v values) (found int, deleted int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var seqs []string
	err = t.Query(ctx, t.DB, find, v, func(rows *sql.Rows) error {
		var seq int64
		err := rows.Scan(&seq)
		seqs = append(seqs, strconv.FormatInt(seq, 10))
		return err
	})
	if err != nil || len(seqs) == 0 {
		return 0, 0, err
	}
	deleted, err = t.Exec(ctx, t.DB, `DELETE FROM {message} WHERE `+isOneOf(seqs), v)
	return len(seqs), deleted, err
}

// isOneOf is a condition for notifications with some numbers that are still in @state. The sum
// keeps PostgreSQL from using the index of the states: while its statistics are old, it may
// think that few are in this one.
func isOneOf(seqs []string) string {
	return `state + 0 = @state AND seq IN (` + strings.Join(seqs, ",") + `)`
}

// sweepable is what a client has to be removed.
type sweepable struct {
	client []byte
	isOld  bool  // some ended too long ago
	bound  int64 // those that ended until then are too many; 0 if none
}

// endedClients comes after the clients with notifications that ended in a state.
const endedClients = `
SELECT f.client,
  CASE WHEN (SELECT m.due FROM {message} m WHERE m.state = @state AND m.client = f.client AND m.grp = 0 ORDER BY m.due, m.seq LIMIT 1) < {now} - @age THEN 1 ELSE 0 END,
  COALESCE((SELECT m.due FROM {message} m WHERE m.state = @state AND m.client = f.client AND m.grp = 0 ORDER BY m.due DESC LIMIT 1 OFFSET @keep), 0)
FROM f WHERE f.client IS NOT NULL ORDER BY f.client`

// sweep removes notifications that ended too long ago, and those beyond a client's number, in
// batches with pauses. One statement looks at many clients.
func (t *tables) sweep(ctx context.Context, o *Options) error {
	const (
		old  = `SELECT seq FROM {message} WHERE state = @state AND client = @client AND grp = 0 AND due < {now} - @age ORDER BY due LIMIT 500`
		many = `SELECT seq FROM {message} WHERE state = @state AND client = @client AND grp = 0 AND due <= @due ORDER BY due LIMIT 500`
	)
	for state := queue.Delivered; state <= queue.Dropped; state++ {
		keep := o.KeepUndelivered
		if state == queue.Delivered {
			keep = o.KeepDelivered
		}
		limit := max(1, min(sweepClients, sweepRows/keep.PerClient))
		v := values{"state": state, "after": []byte{}, "limit": limit, "age": max(keep.For, 0).Microseconds(), "keep": keep.PerClient}
		for {
			all, err := t.sweepable(ctx, v)
			if err != nil {
				return err
			}
			for _, c := range all {
				v["client"], v["due"] = c.client, c.bound
				if c.isOld {
					err = t.removeAll(ctx, old, v)
				}
				if c.bound > 0 && err == nil {
					err = t.removeAll(ctx, many, v)
				}
				if err != nil {
					return err
				}
			}
			if len(all) < limit {
				break
			}
			v["after"] = all[len(all)-1].client
			if !queue.Wait(ctx, sweepWait) {
				return ctx.Err()
			}
		}
	}
	return t.forgetResends(ctx)
}

// sweepable returns what the next clients have to be removed.
func (t *tables) sweepable(ctx context.Context, v values) (all []sweepable, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err = t.Query(ctx, t.DB, t.Engine.Clients(`@state`)+endedClients, v, func(rows *sql.Rows) error {
		var c sweepable
		err := rows.Scan(&c.client, &c.isOld, &c.bound)
		all = append(all, c)
		return err
	})
	return all, err
}

func (t *tables) removeAll(ctx context.Context, find string, v values) error {
	for {
		found, _, err := t.remove500(ctx, find, v)
		if err != nil || found == 0 {
			return err
		}
		if !queue.Wait(ctx, sweepWait) {
			return ctx.Err()
		}
	}
}

// Keep says how long notifications stay in the tables after they have ended.
type Keep struct {
	// For is how long. If negative, they're removed at the next sweep.
	For time.Duration
	// PerClient is how many a client keeps. Beyond that, the oldest are removed.
	PerClient int
}

// or returns k with the defaults for zero values.
func (k Keep) or(defaults Keep) Keep {
	return Keep{cmp.Or(k.For, defaults.For), cmp.Or(k.PerClient, defaults.PerClient)}
}
