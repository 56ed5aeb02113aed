package outbox

import (
	"context"
	"database/sql"
	"log/slog"
	"maps"
	"slices"
	"time"
)

// sighting is when a process first saw a sign of life of another one.
type sighting struct {
	beat int64
	at   time.Time
}

// dead returns the processes without a sign of life for a lease, by our clock. So it doesn't
// matter if the database's clock is set, or if another server takes over with another time.
func (p *process) dead(others map[int64]int64, now time.Time) map[int64]int64 {
	dead := make(map[int64]int64)
	maps.DeleteFunc(p.sightings, func(id int64, _ sighting) bool { _, ok := others[id]; return !ok })
	for id, beat := range others {
		if s, ok := p.sightings[id]; !ok || s.beat != beat {
			p.sightings[id] = sighting{beat, now}
		} else if now.Sub(s.at) >= lease {
			dead[id] = beat
		}
	}
	return dead
}

// takeOver makes the lines of processes that have ended due, given the last signs of life of all.
func (p *process) takeOver(ctx context.Context, others map[int64]int64) {
	dead := p.dead(others, time.Now())
	if len(dead) == 0 {
		return
	}
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	n, err := p.queue.bury(call, dead)
	p.warn(ctx, "can't take over from a process that has ended", err)
	if n > 0 {
		p.options.Logger.LogAttrs(ctx, slog.LevelInfo, "outbox: took over from processes that have ended", slog.Int("processes", n))
	}
}

// orphanLines makes the lines of a process due before all others, as if they had been woken, since
// nobody knows what it was doing.
const orphanLines = `UPDATE {line} SET owner = 0, due = 0, woken = 1 WHERE owner = @me`

// remove deletes a process and makes its lines due.
func (t *tables) remove(ctx context.Context, tx *sql.Tx, id int64) error {
	if _, err := exec(ctx, tx, t.queries.retire, values{"me": id}); err != nil {
		return err
	}
	_, err := exec(ctx, tx, t.queries.orphans, values{"me": id})
	return err
}

func (t *tables) bury(ctx context.Context, dead map[int64]int64) (n int, err error) {
	err = t.transaction(ctx, func(tx *sql.Tx) error {
		n = 0
		// The first statement takes SQLite's lock.
		if _, err := exec(ctx, tx, t.queries.retire, values{"me": 0}); err != nil {
			return err
		}
		for _, id := range slices.Sorted(maps.Keys(dead)) {
			isDead := false
			err := query(ctx, tx, t.queries.unchanged, values{"id": id, "beat": dead[id]}, func(rows *sql.Rows) error {
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
