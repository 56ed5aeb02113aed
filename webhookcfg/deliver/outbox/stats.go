package outbox

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/deliver/outbox/internal/queue"
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
	// sending to. UnderWay is the number of its attempts, and Changes how often it was told
	// that a webhook has changed, or that notifications are sent again.
	Held, Active, UnderWay int
	Changes                uint64
}

// Overdue is how long the first of some waiting notifications has been due, or zero if none is.
type Overdue struct {
	// New is for notifications without an attempt, which are due when they are enqueued, and
	// Retry for others. Both are for clients whose webhooks all work.
	New, Retry time.Duration

	// Failing is for all notifications of clients with a webhook that failed last time.
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
	// Failing is how many of its webhooks failed last time or are paused. Pauses are those of them that
	// are paused, at most ten, the one that ends last first.
	Failing int
	Pauses  []Pause
	// Reason is why the last attempt of the first retry failed. It's empty if there's none.
	Reason deliver.Reason
}

// Pause is a webhook that is paused.
type Pause struct {
	// Scope says which of the client's webhooks it is.
	Scope webhookcfg.Scope
	// Until is the end of its pause, Failures how often it has failed in a row, and Reason why the last
	// time: a word as in [webhookcfg.DeliveryStatus].
	Until    time.Time
	Failures int
	Reason   string
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
		fmt.Fprintf(&b, ", %d of its webhooks failing", c.Failing)
	default:
		b.WriteString(", with as many requests under way as its limits allow, unless \"can't send for now\" is logged")
	}
	if c.Reason != "" {
		fmt.Fprintf(&b, " (%s)", c.Reason)
	}
	if len(c.Pauses) > 0 && !c.Unclaimed {
		p := c.Pauses[0]
		fmt.Fprintf(&b, ", %s paused for another %v after %d failures", nameOf(p.Scope), time.Until(p.Until).Round(time.Second), p.Failures)
		if p.Reason != "" {
			fmt.Fprintf(&b, " (%s)", p.Reason)
		}
	}
	return b.String()
}

// nameOf says which of a client's webhooks it is.
func nameOf(scope webhookcfg.Scope) string {
	if scope.IsAll() {
		return "the default webhook"
	}
	return fmt.Sprintf("the webhook of %q", scope.Entity())
}

// Stats returns figures about the queue. It costs the database ten to fifty milliseconds for each
// thousand clients with waiting notifications, however many wait. Call it for metrics every ten
// seconds or less often.
func (o *Outbox) Stats(ctx context.Context) (Stats, error) {
	s, err := o.tables.stats(ctx)
	if err != nil {
		return s, fmt.Errorf("outbox: stats: %w", err)
	}
	f := o.queue.Figures()
	s.Held, s.Active, s.UnderWay, s.Changes = f.Held, f.Active, f.UnderWay, f.Changes
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

// Status is [deliver.Health.Status] of the sender's [deliver.Options], with the end of the pause while
// deliveries to a failing webhook pause, whichever process sends to it. Pass it as
// [webhookcfg.Options.DeliveryStatus]. Only for a failing webhook, it reads a row of the queue's tables.
// Without a sender, the status is zero.
func (o *Outbox) Status(ctx context.Context, client, entity string, hook webhookcfg.Webhook) (webhookcfg.DeliveryStatus, error) {
	if o.sender == nil {
		return webhookcfg.DeliveryStatus{}, nil
	}
	status, err := o.sender.Status(ctx, client, entity, hook)
	if err != nil || status.State != "failing" {
		return status, err
	}
	if hook.Source == webhookcfg.SourceBase {
		entity = ""
	}
	status.PausedUntil, err = o.tables.pausedUntil(ctx, client, entity, settingOf(hook))
	if err != nil {
		return status, fmt.Errorf("outbox: status: %w", err)
	}
	return status, nil
}

const (
	maxCount   = 10_000 // of a state
	maxWaiting = 1000   // of a client
	maxPauses  = 10     // of a client
	// Clients with waiting notifications are read in pages, so that other statements get
	// their turn on SQLite.
	clientPage, clientPages = 1000, 10
	longestClients          = 10
)

const (
	// With the order, the plan is to read one index. Without it, PostgreSQL's plan for all arguments can
	// be a scan of the table, which is long if few rows match.
	countState = `SELECT COUNT(*) FROM (SELECT 1 FROM {message} WHERE state = @state ORDER BY client, grp, due, seq LIMIT @limit) q`

	countWaiting = `SELECT COUNT(*) FROM (SELECT 1 FROM {message} WHERE state = 0 AND client = @client ORDER BY grp, due, seq LIMIT @limit) q`

	// firstDue finds how long the first notification of a client has waited that was just enqueued, and that
	// of the first group of others: of those that were sent again, or that wait for a webhook. It's
	// negative if it isn't due yet. Those that wait for other webhooks can be older, which ClientStats
	// doesn't look for, either.
	firstDue = `
  {now} - (SELECT n.enqueued FROM {message} n WHERE n.seq = (SELECT m.seq FROM {message} mBYGROUP WHERE m.state = 0 AND m.client = f.client AND m.grp = 0 ORDER BY m.grp, m.due, m.seq LIMIT 1)),
  {now} - (SELECT CASE WHEN n.due > n.enqueued THEN n.due ELSE n.enqueued END FROM {message} n WHERE n.seq = ` + firstOther + `),
  (SELECT n.attempts FROM {message} n WHERE n.seq = ` + firstOther + `),
  CASE WHEN EXISTS (SELECT 1 FROM {pause} p WHERE p.client = f.client) THEN 1 ELSE 0 END`

	firstOther = `(SELECT m.seq FROM {message} mBYGROUP WHERE m.state = 0 AND m.client = f.client AND m.grp > 0 ORDER BY m.grp, m.due, m.seq LIMIT 1)`

	// waitingClients comes after the clients with notifications that wait.
	waitingClients = `
SELECT f.client,` + firstDue + `
FROM f WHERE f.client IS NOT NULL ORDER BY f.client`

	oneClient = `
SELECT f.client,` + firstDue + `
FROM (SELECT client FROM {message} WHERE state = 0 AND client = @client ORDER BY grp, due, seq LIMIT 1) f`

	isUnclaimed = `SELECT CASE WHEN owner = 0 AND due <= {now} THEN 1 ELSE 0 END FROM {line} WHERE client = @client`

	countPauses = `SELECT COUNT(*) FROM {pause} WHERE client = @client`

	longestPauses = `SELECT entity, ends - {now}, failures, reason FROM {pause} WHERE client = @client AND ends > {now} ORDER BY ends DESC, entity LIMIT @pauses`

	onePause = `SELECT ends - {now} FROM {pause} WHERE client = @client AND entity = @entity AND setting = @setting AND ends > {now}`

	retryReason = `SELECT reason FROM {message} WHERE state = 0 AND client = @client AND grp > 1 ORDER BY grp, due, seq LIMIT @limit`

	firstProcess = `SELECT MIN(id) FROM {process}`
)

// leads reports whether a process is the one that logs for all.
func (t *tables) leads(ctx context.Context, me int64) (leads bool, err error) {
	err = t.Query(ctx, t.DB, firstProcess, nil, func(rows *sql.Rows) error {
		var id sql.NullInt64
		err := rows.Scan(&id)
		leads = id.Int64 == me
		return err
	})
	return leads, err
}

func (t *tables) stats(ctx context.Context) (s Stats, err error) {
	for state, n := range map[State]*int{Waiting: &s.Waiting, Delivered: &s.Delivered, GivenUp: &s.GivenUp, Dropped: &s.Dropped} {
		v := values{"limit": maxCount, "state": state.number()}
		if err := t.Query(ctx, t.DB, countState, v, func(rows *sql.Rows) error { return rows.Scan(n) }); err != nil {
			return s, err
		}
	}
	after := []byte{}
	for range clientPages {
		n := 0
		err := t.Query(ctx, t.DB, t.byGroup(t.Engine.Clients(`0`)+waitingClients), values{"after": after, "limit": clientPage}, func(rows *sql.Rows) error {
			n++
			client, o, err := scanOverdue(rows)
			after = []byte(client)
			if s.Overdue.add(o); o.longest() > 0 {
				s.Clients = append(s.Clients, ClientStats{Client: client, Overdue: o.longest()})
			}
			return err
		})
		if err != nil {
			return s, err
		}
		if n < clientPage {
			break
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

// byGroup makes a statement use the index of groups.
func (t *tables) byGroup(text string) string {
	return strings.ReplaceAll(text, "BYGROUP", t.Engine.ByGroup)
}

// overdue returns how long the notifications of a client have been due.
func (t *tables) overdue(ctx context.Context, client string) (late Overdue, err error) {
	err = t.Query(ctx, t.DB, t.byGroup(oneClient), values{"client": []byte(client)}, func(rows *sql.Rows) error {
		_, late, err = scanOverdue(rows)
		return err
	})
	return late, err
}

func scanOverdue(rows *sql.Rows) (client string, o Overdue, err error) {
	var id []byte
	var first, next, attempts sql.NullInt64
	var fails bool
	if err := rows.Scan(&id, &first, &next, &attempts, &fails); err != nil {
		return "", o, err
	}
	o.New = max(queue.Micros(first.Int64), 0)
	if others := max(queue.Micros(next.Int64), 0); attempts.Int64 > 0 {
		o.Retry = others
	} else {
		o.New = max(o.New, others)
	}
	if fails {
		o = Overdue{Failing: o.longest()}
	}
	return string(id), o, nil
}

// describe adds how much waits for a client, and why.
func (t *tables) describe(ctx context.Context, c *ClientStats) error {
	v := values{"client": []byte(c.Client), "limit": maxWaiting, "pauses": maxPauses}
	if err := t.Query(ctx, t.DB, countWaiting, v, func(rows *sql.Rows) error { return rows.Scan(&c.Waiting) }); err != nil {
		return err
	}
	err := t.Query(ctx, t.DB, retryReason, v, func(rows *sql.Rows) error {
		var reason deliver.Reason
		err := rows.Scan(&reason)
		c.Reason = cmp.Or(c.Reason, reason)
		return err
	})
	if err != nil {
		return err
	}
	if err := t.Query(ctx, t.DB, countPauses, v, func(rows *sql.Rows) error { return rows.Scan(&c.Failing) }); err != nil {
		return err
	}
	c.Unclaimed = c.Waiting > 0 // unless there's a line
	if err := t.Query(ctx, t.DB, isUnclaimed, v, func(rows *sql.Rows) error { return rows.Scan(&c.Unclaimed) }); err != nil {
		return err
	}
	return t.Query(ctx, t.DB, longestPauses, v, func(rows *sql.Rows) error {
		var p Pause
		var entity []byte
		var left int64
		err := rows.Scan(&entity, &left, &p.Failures, &p.Reason)
		p.Scope, p.Until = scopeOf(string(entity)), time.Now().Add(queue.Micros(left))
		c.Pauses = append(c.Pauses, p)
		return err
	})
}

// pausedUntil returns the end of the pause of a webhook as it's set, or zero if there's none.
func (t *tables) pausedUntil(ctx context.Context, client, entity string, setting int64) (end time.Time, err error) {
	v := values{"client": []byte(client), "entity": []byte(entity), "setting": setting}
	err = t.Query(ctx, t.DB, onePause, v, func(rows *sql.Rows) error {
		var left int64
		err := rows.Scan(&left)
		end = time.Now().Add(queue.Micros(left))
		return err
	})
	return end, err
}

// scopeOf returns the scope of a webhook: that of an entity, or of all if that's "".
func scopeOf(entity string) webhookcfg.Scope {
	if entity == "" {
		return webhookcfg.All()
	}
	return webhookcfg.Entity(entity)
}
