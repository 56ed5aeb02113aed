package queue

import (
	"context"
	"database/sql"
	"errors"
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

var errLost = errors.New("outbox: the lease of this process has ended")

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
	for Wait(ctx, lease/4) {
		p.mu.Lock()
		left := time.Until(p.valid)
		p.mu.Unlock()
		if left > lease/2 {
			continue // a write has renewed it
		}
		start := time.Now()
		call, cancel := context.WithTimeout(ctx, lease)
		err := p.tables.renew(call, &p.identity)
		cancel()
		switch {
		case err == nil:
			p.extended(start)
		case errors.Is(err, errLost):
			p.lose()
			return
		default:
			p.options.Warn(ctx, "can't renew the lease", err)
		}
	}
}
