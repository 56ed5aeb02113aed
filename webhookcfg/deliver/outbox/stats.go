package outbox

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"
)

// Stats are figures about the queue. Counting stops at 10,000: a number of 10,000 means that
// many or more.
type Stats struct {
	// Waiting, Delivered, GivenUp and Dropped are how many notifications are in these states.
	Waiting, Delivered, GivenUp, Dropped int

	// Clients are those whose due notifications wait longest, at most ten. Of more than 1,000
	// clients with waiting notifications, only the first 1,000 are looked at.
	Clients []ClientStats

	// Held and Active are the clients that this process has, and of them those that it's
	// sending to. UnderWay is the number of its attempts.
	Held, Active, UnderWay int
}

// ClientStats are figures about a client.
type ClientStats struct {
	// Client is the identifier of the client.
	Client string
	// Waiting is how many notifications wait. Counting stops at 1,000.
	Waiting int
	// Overdue is how long the first of them has been due, or was enqueued if there was no
	// attempt.
	Overdue time.Duration
}

// Stats returns figures about the queue. It costs some milliseconds, whatever waits. Call it
// for metrics every ten seconds or less often.
func (o *Outbox) Stats(ctx context.Context) (Stats, error) {
	s, err := o.tables.stats(ctx)
	if err != nil {
		return s, fmt.Errorf("outbox: stats: %w", err)
	}
	o.mu.Lock()
	p := o.process
	o.mu.Unlock()
	if p != nil {
		p.mu.Lock()
		s.Held, s.Active = len(p.lines), p.active
		p.mu.Unlock()
		s.UnderWay = int(p.underWay.Load())
	}
	return s, nil
}

const (
	countState = `SELECT COUNT(*) FROM (SELECT 1 FROM {message} WHERE state = @state LIMIT 10000) q`

	waitingClients = `
WITH RECURSIVE f (client, n) AS (
  SELECT * FROM (SELECT client, 1 FROM {message} WHERE state = @state ORDER BY client LIMIT 1) q
  UNION ALL
  SELECT (SELECT m.client FROM {message} m WHERE m.state = @state AND m.client > f.client ORDER BY m.client LIMIT 1), n + 1
  FROM f WHERE f.client IS NOT NULL AND n < 1000
)
SELECT client, {now} - COALESCE((SELECT CASE WHEN m.due = 0 THEN m.enqueued ELSE m.due END FROM {message} m
  WHERE m.state = @state AND m.client = f.client ORDER BY m.due, m.seq LIMIT 1), 0) FROM f WHERE client IS NOT NULL`

	countWaiting = `
SELECT COUNT(*) FROM (SELECT 1 FROM {message} WHERE state IN (0, 1) AND client = @client LIMIT 1000) q`
)

func (t *tables) stats(ctx context.Context) (s Stats, err error) {
	count := t.dialect.compile(t.prefix, countState)
	for state, n := range map[int]*int{stateFresh: &s.Waiting, stateWaiting: &s.Waiting, stateDelivered: &s.Delivered, stateGivenUp: &s.GivenUp, stateDropped: &s.Dropped} {
		err := query(ctx, t.db, count, values{"state": state}, func(rows *sql.Rows) error {
			var found int
			err := rows.Scan(&found)
			*n = min(*n+found, 10_000)
			return err
		})
		if err != nil {
			return s, err
		}
	}
	overdue := make(map[string]time.Duration)
	for _, state := range Waiting.parts() {
		err := query(ctx, t.db, t.dialect.compile(t.prefix, waitingClients), values{"state": state}, func(rows *sql.Rows) error {
			var client []byte
			var late int64
			err := rows.Scan(&client, &late)
			overdue[string(client)] = max(overdue[string(client)], micros(late))
			return err
		})
		if err != nil {
			return s, err
		}
	}
	for client, late := range overdue {
		if late > 0 {
			s.Clients = append(s.Clients, ClientStats{Client: client, Overdue: late})
		}
	}
	slices.SortFunc(s.Clients, func(a, b ClientStats) int { return int(b.Overdue - a.Overdue) })
	s.Clients = s.Clients[:min(len(s.Clients), 10)]
	for i := range s.Clients {
		c := &s.Clients[i]
		err := query(ctx, t.db, t.dialect.compile(t.prefix, countWaiting), values{"client": []byte(c.Client)}, func(rows *sql.Rows) error { return rows.Scan(&c.Waiting) })
		if err != nil {
			return s, err
		}
	}
	return s, nil
}
