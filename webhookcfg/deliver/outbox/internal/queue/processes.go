package queue

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"example.com/go-webhookcfg/internal/dialect"
)

// lease is how long a process has its lines after its last sign of life. It renews the lease four
// times as often, and starts nothing in its last quarter.
const lease = 3500 * time.Millisecond

// identity is what a process is known by in the tables.
type identity struct {
	id int64

	mu     sync.Mutex
	beats  int64 // signs of life that were sent
	stored int64 // the last of them that is certainly in the tables
}

// beat returns the number of the next sign of life, and of the last one that is stored.
func (i *identity) beat() (next, stored int64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.beats++
	return i.beats, i.stored
}

func (i *identity) hasStored(beat int64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.stored = max(i.stored, beat)
}

var (
	errLost = errors.New("outbox: the lease of this process has ended")
	// ErrSettings means that another process works with other settings.
	ErrSettings = errors.New("outbox: another process with these tables has another Schedule: stop it first, or give both the same Options")
)

// join registers a process. The error is ErrSettings if another one has other settings. One process
// at a time joins, so that each sees the others.
func (t *Tables) join(ctx context.Context, me *identity, settings string) error {
	v := dialect.Values{"me": me.id, "lease": lease.Microseconds(), "settings": settings}
	return t.Transaction(ctx, func(tx *sql.Tx) error {
		if _, err := t.Exec(ctx, tx, `UPDATE {schema} SET version = version WHERE id = 1`+t.Engine.untilIdle, v); err != nil {
			return err
		}
		if _, err := t.Exec(ctx, tx, `INSERT INTO {process} (id, beat, until, settings) VALUES (@me, 0, {now} + @lease, @settings)`, v); err != nil {
			return err
		}
		return t.Query(ctx, tx, `SELECT settings FROM {process} WHERE until >= {now} AND settings <> @settings`, v, func(*sql.Rows) error { return ErrSettings })
	})
}

// fenced calls change in a transaction of a process that still has its lines, and extends the
// lease. It locks the process's row, and whoever wants the lines of another process deletes its row
// first. So nobody else has the lines before the commit. If the lease has ended, but nobody has
// taken the lines, it's valid again.
//
// If a sign of life is missing that the tables had, they have lost changes, for example in a
// failover to a server that lagged behind. Then perhaps others have the lines, too, and the error is
// errLost.
func (t *Tables) fenced(ctx context.Context, me *identity, change func(tx *sql.Tx) error) error {
	beat, stored := me.beat()
	err := t.Transaction(ctx, func(tx *sql.Tx) error {
		if err := t.extend(ctx, tx, me.id, beat, stored); err != nil {
			return err
		}
		return change(tx)
	})
	if err == nil {
		me.hasStored(beat)
	}
	return err
}

// renew extends the lease of a process.
func (t *Tables) renew(ctx context.Context, me *identity) error {
	beat, stored := me.beat()
	err := t.extend(ctx, t.DB, me.id, beat, stored)
	if err == nil {
		me.hasStored(beat)
	}
	return err
}

func (t *Tables) extend(ctx context.Context, c Conn, me int64, beat, stored int64) error {
	rows, err := t.Exec(ctx, c, `
UPDATE {process} SET until = {now} + @lease, beat = CASE WHEN beat < @beat THEN @beat ELSE beat END
WHERE id = @me AND beat >= @stored`+t.Engine.untilIdle, dialect.Values{"me": me, "lease": lease.Microseconds(), "beat": beat, "stored": stored})
	if err == nil && rows == 0 {
		err = errLost
	}
	return err
}

// leave removes a process, and gives all its lines back.
func (t *Tables) leave(ctx context.Context, me *identity) error {
	return t.Transaction(ctx, func(tx *sql.Tx) error { return t.remove(ctx, tx, me.id) })
}

// bury removes processes without a sign of life after the given one, and makes their lines due.
func (t *Tables) bury(ctx context.Context, dead map[int64]int64) (n int, err error) {
	err = t.Transaction(ctx, func(tx *sql.Tx) error {
		n = 0
		// The first statement takes SQLite's lock.
		if _, err := t.Exec(ctx, tx, `DELETE FROM {process} WHERE id = 0`, nil); err != nil {
			return err
		}
		for _, id := range slices.Sorted(maps.Keys(dead)) {
			isDead := false
			err := t.Query(ctx, tx, `SELECT id FROM {process} WHERE id = @id AND beat = @beat`+t.Engine.LockRows, dialect.Values{"id": id, "beat": dead[id]}, func(rows *sql.Rows) error {
				isDead = true
				return rows.Scan(new(int64))
			})
			if err == nil && isDead {
				n++
				err = t.remove(ctx, tx, id)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	return n, err
}

// remove deletes a process and makes its lines due before all others, since nobody knows what it
// was doing.
func (t *Tables) remove(ctx context.Context, tx *sql.Tx, id int64) error {
	v := dialect.Values{"me": id}
	if _, err := t.Exec(ctx, tx, `DELETE FROM {process} WHERE id = @me`, v); err != nil {
		return err
	}
	_, err := t.Exec(ctx, tx, `UPDATE {line} SET owner = 0, due = 0 WHERE owner = @me`, v)
	return err
}
