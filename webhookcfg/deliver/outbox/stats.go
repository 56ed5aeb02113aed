package outbox

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"example.com/go-webhookcfg/webhookcfg/deliver"
)

// Stats are figures about the queue. Counting stops at 10,000: a number of 10,000 means that
// many or more.
type Stats struct {
	// Waiting, Delivered, GivenUp and Dropped are how many notifications are in these states.
	Waiting, Delivered, GivenUp, Dropped int

	// Overdue is how long waiting notifications have been due.
	Overdue Overdue

	// Clients are those whose due notifications wait longest, at most ten. A client with nothing
	// but retries that aren't due yet isn't behind, and isn't one of them, however many wait: see
	// [Outbox.ClientStats]. Of more than 10,000 clients with waiting notifications, only the first
	// 10,000 are looked at, for Overdue too.
	Clients []ClientStats

	// Held and Active are the clients that this process has, and of them those that it's
	// sending to. UnderWay is the number of its attempts, and Wakes how often it was told
	// that a webhook has changed or works again.
	Held, Active, UnderWay int
	Wakes                  uint64
}

// Overdue is how long the first of some waiting notifications has been due, or zero if none is.
type Overdue struct {
	// New is for notifications without an attempt, which are due when they are enqueued, and
	// Retry for others. Both are for clients whose receivers all work.
	New, Retry time.Duration

	// Failing is for all notifications of clients with a receiver that failed last time.
	// Probably they wait for the end of its pause.
	Failing time.Duration
}

func (o *Overdue) add(p Overdue) {
	o.New, o.Retry, o.Failing = max(o.New, p.New), max(o.Retry, p.Retry), max(o.Failing, p.Failing)
}

func (o Overdue) longest() time.Duration { return max(o.New, o.Retry, o.Failing) }

// ClientStats say how much waits for a client, how long, and why.
type ClientStats struct {
	// Client is the identifier of the client.
	Client string
	// Waiting is how many notifications wait. Counting stops at 1,000.
	Waiting int
	// Overdue is how long the first of them has been due, or was enqueued if there was no
	// attempt.
	Overdue time.Duration
	// Unclaimed says that the client has its turn, but no process has taken it: all are busy
	// with other clients, or none runs.
	Unclaimed bool
	// Failing is how many of its receivers failed last time, up to 128. PausedUntil is when
	// the first pause of them ends. It's zero if none is paused.
	Failing     int
	PausedUntil time.Time
	// Reason is why the last attempt of the first retry failed. It's empty if there's none.
	Reason deliver.Reason
}

// String says who waits, how much, and why, for logs.
func (c ClientStats) String() string {
	if c.Waiting == 0 {
		return fmt.Sprintf("%q: nothing waiting", c.Client)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%q: %d", c.Client, c.Waiting)
	if c.Waiting == maxWaiting {
		b.WriteString(" or more")
	}
	if c.Overdue > 0 {
		fmt.Fprintf(&b, " waiting, the first due for %v", c.Overdue.Round(time.Second))
	} else {
		b.WriteString(" waiting for a retry")
	}
	switch {
	case c.Overdue == 0:
	case c.Unclaimed:
		b.WriteString(", and no process sends to it")
	case c.Failing > 0:
		fmt.Fprintf(&b, ", %d of its receivers failing", c.Failing)
	default:
		b.WriteString(", with as many requests under way as its limits allow")
	}
	if c.Reason != "" {
		fmt.Fprintf(&b, " (%s)", c.Reason)
	}
	if left := time.Until(c.PausedUntil); !c.Unclaimed && left > 0 {
		fmt.Fprintf(&b, ", paused for another %v", left.Round(time.Second))
	}
	return b.String()
}

// Stats returns figures about the queue. It costs the database ten to fifty milliseconds for each
// thousand clients with waiting notifications, however many wait. Call it for metrics every ten
// seconds or less often.
func (o *Outbox) Stats(ctx context.Context) (Stats, error) {
	s, err := o.queue.stats(ctx)
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
	s.Wakes = o.wakes.Load()
	return s, nil
}

// ClientStats returns how much waits for a client, how long, and why. It costs a millisecond.
func (o *Outbox) ClientStats(ctx context.Context, client string) (ClientStats, error) {
	c := ClientStats{Client: client}
	late, err := o.tables.overdue(ctx, client)
	if err == nil {
		c.Overdue = late.longest()
		err = o.tables.describe(ctx, &c)
	}
	if err != nil {
		return c, fmt.Errorf("outbox: stats: %w", err)
	}
	return c, nil
}

const (
	maxCount   = 10_000 // of a state
	maxWaiting = 1000   // of a client
	// Clients with waiting notifications are read in pages, so that other statements get
	// their turn on SQLite.
	clientPage, clientPages = 1000, 10
	longestClients          = 10
)

const (
	// With the order, the plan is to read one index. Without it, PostgreSQL's plan for all arguments can
	// be a scan of the table, which is long if few rows match.
	countState = `SELECT COUNT(*) FROM (SELECT 1 FROM {message} WHERE state = @state ORDER BY client, due, seq LIMIT @limit) q`

	countWaiting = `SELECT COUNT(*) FROM (SELECT 1 FROM {message} WHERE state = @state AND client = @client ORDER BY due, seq LIMIT @limit) q`

	// firstDue finds the first notification without an attempt, and the first retry.
	firstDue = `
  {now} - (SELECT m.enqueued FROM {message} m WHERE m.state = @state AND m.client = f.client AND m.due = 0 ORDER BY m.seq LIMIT 1),
  {now} - (SELECT m.due FROM {message} m WHERE m.state = @state AND m.client = f.client AND m.due > 0 ORDER BY m.due, m.seq LIMIT 1),
  CASE WHEN COALESCE(l.pauses, '') = '' THEN 0 ELSE 1 END`

	// waitingClients comes after the clients with notifications in a state.
	waitingClients = `
SELECT f.client,` + firstDue + `
FROM f LEFT JOIN {line} l ON l.client = f.client WHERE f.client IS NOT NULL ORDER BY f.client`

	oneClient = `
SELECT f.client,` + firstDue + `
FROM (SELECT client FROM {message} WHERE state = @state AND client = @client ORDER BY due, seq LIMIT 1) f
LEFT JOIN {line} l ON l.client = f.client`

	lineOf = `SELECT CASE WHEN owner = 0 AND due <= {now} THEN 1 ELSE 0 END, pauses FROM {line} WHERE client = @client`

	retryReason = `SELECT reason FROM {message} WHERE state = 1 AND client = @client AND due > 0 ORDER BY due, seq LIMIT 1`

	firstProcess = `SELECT MIN(id) FROM {process}`
)

// leads reports whether a process is the one that logs for all.
func (t *tables) leads(ctx context.Context, me int64) (leads bool, err error) {
	err = query(ctx, t.db, t.compile(firstProcess), nil, func(rows *sql.Rows) error {
		var id sql.NullInt64
		err := rows.Scan(&id)
		leads = id.Int64 == me
		return err
	})
	return leads, err
}

func (t *tables) stats(ctx context.Context) (s Stats, err error) {
	for state, n := range map[State]*int{Waiting: &s.Waiting, Delivered: &s.Delivered, GivenUp: &s.GivenUp, Dropped: &s.Dropped} {
		if *n, err = t.count(ctx, countState, state, values{"limit": maxCount}); err != nil {
			return s, err
		}
	}
	late := make(map[string]Overdue)
	for _, state := range Waiting.parts() {
		if err := t.overdueAll(ctx, state, late); err != nil {
			return s, err
		}
	}
	for client, o := range late {
		s.Overdue.add(o)
		if o.longest() > 0 {
			s.Clients = append(s.Clients, ClientStats{Client: client, Overdue: o.longest()})
		}
	}
	slices.SortFunc(s.Clients, func(a, b ClientStats) int { return cmp.Compare(b.Overdue, a.Overdue) })
	s.Clients = s.Clients[:min(len(s.Clients), longestClients)]
	for i := range s.Clients {
		if err := t.describe(ctx, &s.Clients[i]); err != nil {
			return s, err
		}
	}
	return s, nil
}

// count returns how many notifications are in a state, up to the limit.
func (t *tables) count(ctx context.Context, template string, state State, v values) (n int, err error) {
	count, limit := t.compile(template), v["limit"].(int)
	for _, v["state"] = range state.parts() {
		err := query(ctx, t.db, count, v, func(rows *sql.Rows) error {
			var found int
			err := rows.Scan(&found)
			n = min(n+found, limit)
			return err
		})
		if err != nil {
			return 0, err
		}
	}
	return n, nil
}

// overdueAll adds how long notifications in a state have been due, for each client.
func (t *tables) overdueAll(ctx context.Context, state int, late map[string]Overdue) error {
	s := t.compile(t.engine.clients + waitingClients)
	after := []byte{}
	for range clientPages {
		n := 0
		err := query(ctx, t.db, s, values{"state": state, "after": after, "limit": clientPage}, func(rows *sql.Rows) error {
			n++
			client, found, err := scanOverdue(rows)
			o := late[client]
			o.add(found)
			late[client], after = o, []byte(client)
			return err
		})
		if err != nil || n < clientPage {
			return err
		}
	}
	return nil
}

// overdue returns how long the notifications of a client have been due.
func (t *tables) overdue(ctx context.Context, client string) (late Overdue, err error) {
	for _, state := range Waiting.parts() {
		err := query(ctx, t.db, t.compile(oneClient), values{"state": state, "client": []byte(client)}, func(rows *sql.Rows) error {
			_, found, err := scanOverdue(rows)
			late.add(found)
			return err
		})
		if err != nil {
			return late, err
		}
	}
	return late, nil
}

func scanOverdue(rows *sql.Rows) (client string, o Overdue, err error) {
	var id []byte
	var first, retry sql.NullInt64
	var fails bool
	if err := rows.Scan(&id, &first, &retry, &fails); err != nil {
		return "", o, err
	}
	o = Overdue{New: max(micros(first.Int64), 0), Retry: max(micros(retry.Int64), 0)}
	if fails {
		o = Overdue{Failing: o.longest()}
	}
	return string(id), o, nil
}

// describe adds how much waits for a client, and why.
func (t *tables) describe(ctx context.Context, c *ClientStats) error {
	v := values{"client": []byte(c.Client), "limit": maxWaiting}
	var err error
	if c.Waiting, err = t.count(ctx, countWaiting, Waiting, v); err != nil {
		return err
	}
	err = query(ctx, t.db, t.compile(retryReason), v, func(rows *sql.Rows) error { return rows.Scan(&c.Reason) })
	if err != nil {
		return err
	}
	c.Unclaimed = c.Waiting > 0 // unless there's a line
	return query(ctx, t.db, t.compile(lineOf), v, func(rows *sql.Rows) error {
		var text string
		if err := rows.Scan(&c.Unclaimed, &text); err != nil || text == "" {
			return err
		}
		var all []pause
		if err := json.Unmarshal([]byte(text), &all); err != nil {
			return fmt.Errorf("pauses of a line: %w", err)
		}
		c.Failing = len(all)
		for _, p := range all {
			if p.Until.After(time.Now()) {
				c.PausedUntil = earliest(c.PausedUntil, p.Until)
			}
		}
		return nil
	})
}
