package outbox

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// lease is how long a process has its lines after its last sign of life. It renews the lease
// four times as often, and starts nothing in its last quarter.
const lease = 3500 * time.Millisecond

var errLost = errors.New("outbox: the lease of this process has ended")

// extended records that the lease was extended by a call that started at a time.
func (p *process) extended(start time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if until := start.Add(lease * 3 / 4); until.After(p.valid) {
		p.valid = until
	}
}

// mayStart reports whether an attempt may start: the lease is certainly valid.
func (p *process) mayStart() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.lost && time.Now().Before(p.valid)
}

func (p *process) isLost() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lost
}

func (p *process) lose() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.lost {
		p.lost = true
		close(p.expired)
	}
}

// keepLease renews the lease.
func (p *process) keepLease(ctx context.Context) {
	for wait(ctx, lease/4) {
		p.mu.Lock()
		left := time.Until(p.valid)
		p.mu.Unlock()
		if left > lease/2 {
			continue // a write has renewed it
		}
		start := time.Now()
		call, cancel := context.WithTimeout(ctx, lease)
		err := p.queue.renew(call, p.id, lease)
		cancel()
		switch {
		case err == nil:
			p.extended(start)
		case errors.Is(err, errLost):
			p.lose()
			return
		default:
			p.warn(ctx, "can't renew the lease", err)
		}
	}
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
