package queue

import (
	"context"
	"database/sql"
	"maps"
	"slices"
	"time"

	"example.com/go-webhookcfg/internal/dialect"
)

// sighting is when a process first saw a sign of life of another one.
type sighting struct {
	beat int64
	at   time.Time
}

// see takes in the last signs of life of other processes. It returns those without one for a lease, by
// our clock. So it doesn't matter if the database's clock is set, or if another server takes over
// with another time.
func (p *process) see(others map[int64]int64, now time.Time) map[int64]int64 {
	dead := make(map[int64]int64)
	maps.DeleteFunc(p.sightings, func(id int64, _ sighting) bool { _, ok := others[id]; return !ok })
	alive := []int64{p.id}
	for id, beat := range others {
		if s, ok := p.sightings[id]; !ok || s.beat != beat {
			p.sightings[id] = sighting{beat, now}
		} else if now.Sub(s.at) >= lease {
			dead[id] = beat
			continue
		}
		alive = append(alive, id)
	}
	p.mu.Lock()
	p.alive = alive
	p.mu.Unlock()
	return dead
}

// takeOver makes the lines of processes that have ended due.
func (p *process) takeOver(ctx context.Context, dead map[int64]int64) {
	if len(dead) == 0 {
		return
	}
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	n, err := p.tables.bury(call, dead)
	p.options.Warn(ctx, "can't take over from a process that has ended", err)
	if n > 0 {
		p.options.TookOver(n)
	}
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

// owns reports whether a client belongs to this process: of all that live, it has the highest hash
// with that client. So a process that comes or goes changes as few as possible.
func (p *process) owns(client string) bool {
	p.mu.Lock()
	alive := p.alive
	p.mu.Unlock()
	mine := shareOf(client, p.id)
	return !slices.ContainsFunc(alive, func(id int64) bool { return shareOf(client, id) > mine })
}

// shareOf returns the hash of a client and a process.
func shareOf(client string, id int64) uint64 {
	h := uint64(id) * 0x9E3779B97F4A7C15
	for i := range len(client) {
		h = (h ^ uint64(client[i])) * 0x100000001B3 // as in FNV
	}
	h ^= h >> 31
	h *= 0xBF58476D1CE4E5B9
	return h ^ h>>29
}
