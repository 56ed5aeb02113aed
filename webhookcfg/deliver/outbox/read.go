package outbox

import (
	"context"
	"database/sql"
	"slices"
	"time"
)

const (
	// page is how many notifications a line reads at a time.
	page = 128
	// widePage is how many it reads at a time if it looks past what it can't send.
	widePage = 512
	// keepUnseen is how long a notification in memory stays fresh in the tables. Most are
	// delivered by then, and need no other write than that.
	keepUnseen = 100 * time.Millisecond
)

// maxReads is how many lines read at a time. Those that are behind read one at a time, so that
// the others needn't wait for them.
const maxReads = 3

// retriesStart is where the second zone starts.
var retriesStart = position{due: 1}

// read is what to read next from the tables.
type read struct {
	fresh bool
	past  bool     // fresh, and look past what there's no room for
	from  position // if not fresh
	limit int
}

// nextRead returns what to read next, and whether there is anything to read now.
func (l *line) nextRead(now time.Time) (rd read, ok bool) {
	if now.Before(l.resume) || now.Before(l.readAfter) {
		return read{}, false
	}
	if l.parking > 0 {
		return read{}, false // they'd be read again
	}
	if from := l.again[zoneRetry]; from != nil && l.order == InOrder {
		return read{from: *from, limit: widePage}, true // others may have to wait for these
	}
	if from := l.refill(now); from != nil {
		return read{from: *from, limit: page}, true
	}
	// Fresh ones mustn't overtake those that have to be read again.
	fresh := l.fresh && l.again[zoneFirst] == nil
	if fresh && l.stuck != nil && l.stuck.held < room/2 && !l.stuck.blocked.After(now) {
		return read{fresh: true, limit: l.unseen + page}, true
	}
	if !l.isHungry(now) {
		return read{}, false
	}
	if fresh && l.stuck == nil {
		limit := l.unseen + page
		if !l.isBehind() {
			limit = l.unseen + l.perClient + 1 // more than that, and the line is behind
		}
		return read{fresh: true, limit: limit}, true
	}
	if fresh {
		return read{fresh: true, past: true, limit: l.unseen + widePage}, true
	}
	for _, zone := range [...]int{zoneRetry, zoneFirst} {
		if from := l.again[zone]; from != nil {
			return read{from: *from, limit: widePage}, true
		}
	}
	return read{}, false
}

// refill returns the first position that a receiver with room has skipped, or nil.
func (l *line) refill(now time.Time) (from *position) {
	for _, r := range l.receivers {
		if r.held >= room/2 || r.blocked.After(now) {
			continue
		}
		if r.isFailing && l.fresh && !l.wasFresh {
			continue // fresh ones take turns with those that may fail again
		}
		for _, s := range r.skipped {
			if s != nil && (from == nil || s.compare(*from) < 0) {
				from = s
			}
		}
	}
	return from
}

// isHungry reports whether the client has slots that no message in memory can use.
func (l *line) isHungry(now time.Time) bool {
	n := l.underway
	for _, r := range l.turns {
		if !r.blocked.After(now) {
			n += min(len(r.queue), r.limit-r.underway)
		}
	}
	return n < l.perClient
}

// isBehind reports whether the client has more to send than it has slots.
func (l *line) isBehind() bool { return l.unsent > l.perClient || l.full }

// addFresh takes in fresh rows, whose receivers must be known. It stops at the first one
// without room, unless past is set: then it returns those that must be written as seen, so
// that the next read gets the ones behind them.
func (l *line) addFresh(rows []row, limit int, past bool, now time.Time) (seen []outcome) {
	more := len(rows) >= limit
	l.full = more
	l.stuck = nil
	// Those that are old were perhaps sent again while nobody had the line. Then others have waited
	// for them, which must be found before anything goes out.
	isAgain := l.order == InOrder && !l.rescan.IsZero() && slices.ContainsFunc(rows, func(r row) bool { return r.age >= hold })
	if isAgain {
		l.rescan = now
	}
	for _, row := range rows {
		l.receiver(l.routes[row.entity]) // what ends its pause lets those before it go on, too
	}
	for _, row := range rows {
		if l.isKnown(row.seq) {
			continue
		}
		at := l.routes[row.entity]
		r := l.receiver(at)
		m := &message{row: row, receiver: r, unseen: true, taken: now}
		switch {
		case isAgain, l.isStalled(row):
			seen = append(seen, l.parkFresh(m))
		case r.takes(row.position, now):
			l.add(m, r)
		case past, r.isFailing:
			r.skip(row.position)
			seen = append(seen, l.parkFresh(m))
		case l.stuck == nil:
			l.stuck = r
			more = true
		}
	}
	l.fresh = more
	if len(seen) > 0 {
		// The next process reads these before fresh ones, so those in memory come first.
		seen = append(seen, l.late(now.Add(keepUnseen))...)
	}
	return seen
}

// parkFresh holds a fresh message until it's written as seen, which is the outcome.
func (l *line) parkFresh(m *message) outcome {
	m.state = parked
	l.held[m.seq] = m
	l.unseen++
	l.parking++
	return m.seen()
}

// seen is the outcome that a message waits.
func (m *message) seen() outcome {
	return outcome{Seq: m.seq, Enqueued: m.enqueued, State: stateWaiting, Attempts: m.attempts}
}

// isSeen reports whether an outcome is that of seen. A retry has a delay.
func (o outcome) isSeen() bool { return o.State == stateWaiting && o.Delay == 0 }

// late returns messages that have been in memory for a while, so that they are written as
// seen.
func (l *line) late(now time.Time) (seen []outcome) {
	if l.unseen == l.parking {
		return nil
	}
	for _, m := range l.held {
		if m.unseen && m.state < ended && now.Sub(m.taken) >= keepUnseen {
			m.unseen, m.marked = false, true
			l.unseen--
			seen = append(seen, m.seen())
		}
	}
	return seen
}

// addWaiting takes in rows that were read from a position. It returns what must be written as
// seen.
func (l *line) addWaiting(from position, rows []row, limit int, now time.Time) (seen []outcome) {
	zone := from.zone()
	rows, next := l.within(from, rows, limit, now)
	for _, r := range l.receivers {
		r.reread(from, next)
	}
	if e := l.earlier; e != nil && zone == zoneFirst && from.compare(*e) <= 0 && (next == nil || e.compare(*next) < 0) {
		l.earlier = next
	}
	isAgain := false
	if a := l.again[zone]; a != nil && from.compare(*a) <= 0 {
		isAgain = from == *a
		l.again[zone] = next
	}
	if isAgain && from == retriesStart {
		l.startRetries()
	}
	for _, row := range rows {
		if !l.isKnown(row.seq) {
			seen = append(seen, l.takeWaiting(row, next, now)...)
		}
	}
	if isAgain && next == nil && zone == zoneRetry {
		l.endRetries()
	}
	for _, r := range l.receivers {
		if l.woken && next != nil && r.skipped[zone] == next && r.held == 0 {
			r.blocked = l.rested // the line reads all of it then, wherever it leads now
		}
		l.settle(r, now)
	}
	return seen
}

// within returns the rows of a read that are in the zone of its start, up to the first retry that
// nobody wants before it's due. The zone goes on at next, or is read to its end if that's nil.
func (l *line) within(from position, rows []row, limit int, now time.Time) (all []row, next *position) {
	for i, row := range rows {
		if row.zone() != from.zone() {
			return rows[:i], nil
		}
		if row.left > 0 && !l.ahead.After(now) && l.order != InOrder {
			l.retry = earliest(l.retry, now.Add(row.left))
			return rows[:i], nil
		}
	}
	if len(rows) >= limit {
		next = &position{rows[len(rows)-1].due, rows[len(rows)-1].seq + 1}
	}
	return rows, next
}

// takeWaiting takes in a row of a read that goes on at next. It returns what must be written as
// seen.
func (l *line) takeWaiting(row row, next *position, now time.Time) (seen []outcome) {
	at := l.routes[row.entity]
	if row.due > 0 && l.order == InOrder {
		seen = l.stall(row.entity, row.seq)
	}
	if row.left > 0 && !(l.ahead.After(now) && at.since.UnixMicro() > row.since) {
		l.retry = earliest(l.retry, now.Add(row.left))
		return seen
	}
	if l.isStalled(row) {
		return seen // it's read again when the first one has ended
	}
	r := l.receiver(at)
	s := r.skipped[row.zone()]
	if r.held < room && !r.blocked.After(now) && (s == nil || s == next || row.compare(*s) < 0) {
		l.add(&message{row: row, taken: now}, r)
	} else {
		r.skip(row.position)
	}
	return seen
}

// After a read that took nothing in, the next one waits for an event, or for minIdle. Each further
// one waits twice as long, up to maxIdle. Without that, a line that misjudges what a read can bring
// would read all the time.
const (
	minIdle = 2 * time.Millisecond
	maxIdle = 500 * time.Millisecond
)

// tookNothing reacts to a read that took nothing in.
func (l *line) tookNothing(now time.Time) {
	if !l.eventful {
		l.readAfter = now.Add(min(minIdle<<l.fruitless, maxIdle))
		l.fruitless = min(l.fruitless+1, 8)
	}
}

// event says that the next read may take something in.
func (l *line) event() { l.eventful, l.fruitless, l.readAfter = true, 0, time.Time{} }

// startRead starts to remember what is written while a read is under way. What it returns can
// be from before that.
func (l *line) startRead() { l.eventful, l.settled = false, make(map[int64]bool) }

func (l *line) endRead() {
	for _, m := range l.missed {
		l.receiver(l.routes[m.entity]).skip(m.position)
	}
	l.settled, l.missed = nil, nil
}

// isKnown reports whether the row of a read is in memory, or was while the read was under way.
func (l *line) isKnown(seq int64) bool { return l.held[seq] != nil || l.settled[seq] }

// read starts to read what the line needs next, unless it's reading already.
func (d *drain) read(ctx context.Context) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.reads || d.stopped {
		return
	}
	rd, ok := d.line.nextRead(time.Now())
	if !ok {
		return
	}
	d.line.wasFresh = rd.fresh
	if rd.fresh {
		d.line.fresh = false // what comes from here on is news
	}
	d.line.startRead()
	d.reads = true
	goesOn := !rd.fresh && rd.limit == widePage && rd.from.seq > 0 // past what it can't send
	isBehind := goesOn || d.line.isBehind()
	d.process.drains.Go(func() {
		lane := d.process.reading
		if isBehind {
			lane = d.process.catchingUp
		}
		lane <- struct{}{}
		for isBehind && d.process.isWriting(rd.past) && wait(ctx, tick) {
		}
		start := time.Now()
		rows, err := d.process.rows(ctx, d.line.client, rd)
		took := time.Since(start)
		d.process.drains.Go(func() {
			if isBehind {
				wait(ctx, took) // the others' turn
			}
			<-lane
		})
		if goesOn {
			d.mu.Lock()
			d.line.rest(start.Add(took), took)
			d.mu.Unlock()
		}
		if known := d.lookUp(ctx, rows); len(known) < len(rows) {
			rows, rd.limit = known, len(known) // the others are read again
		}
		d.take(ctx, rd, rows, err)
	})
}

// take takes in what was read.
func (d *drain) take(ctx context.Context, rd read, rows []row, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	defer signal(d.kick)
	defer d.line.endRead()
	d.reads = false
	now, had := time.Now(), len(d.line.held)
	switch {
	case d.stopped, rd.fresh && d.line.again[zoneFirst] != nil: // others have come first meanwhile
		d.line.fresh = d.line.fresh || rd.fresh
	case err != nil:
		d.process.warn(ctx, "can't read notifications", err)
		d.line.fresh = d.line.fresh || rd.fresh
		d.line.resume = now.Add(jitter(time.Second))
	case rd.fresh:
		news := d.line.fresh
		seen := d.line.addFresh(rows, rd.limit, rd.past, now)
		d.line.fresh = d.line.fresh || news
		d.mark(seen)
	default:
		d.mark(d.line.addWaiting(rd.from, rows, rd.limit, now))
	}
	if goesOn := !rd.fresh && len(rows) >= rd.limit; len(d.line.held) > had || goesOn {
		d.line.event()
	} else {
		d.line.tookNothing(now)
	}
}

// isWriting reports whether lines that are behind must wait for the writer before they read, or
// before they look past what they can't send, which marks notifications as seen.
func (p *process) isWriting(past bool) bool {
	outcomes, seen := p.writer.unwritten()
	return (outcomes > maxBatch || past && seen > maxBatch) && !p.isStopping()
}

// rows reads notifications.
func (p *process) rows(ctx context.Context, client string, rd read) ([]row, error) {
	if p.isStopping() {
		return nil, context.Canceled
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if rd.fresh {
		return p.queue.fresh(ctx, client, rd.limit)
	}
	return p.queue.waiting(ctx, client, rd.from, rd.limit)
}

func (t *tables) fresh(ctx context.Context, client string, limit int) ([]row, error) {
	return t.rows(ctx, t.queries.fresh, values{"client": []byte(client), "limit": limit})
}

func (t *tables) waiting(ctx context.Context, client string, from position, limit int) ([]row, error) {
	return t.rows(ctx, t.queries.waiting, values{"client": []byte(client), "due": from.due, "seq": from.seq, "limit": limit})
}

func (t *tables) rows(ctx context.Context, s statement, v values) (all []row, err error) {
	err = query(ctx, t.db, s, v, func(rows *sql.Rows) error {
		var r row
		var entity []byte
		var left, age int64
		if err := rows.Scan(&r.seq, &r.due, &entity, &r.id, &r.contentType, &r.body, &r.attempts, &left, &r.since, &age, &r.enqueued); err != nil {
			return err
		}
		r.entity, r.left, r.age = string(entity), micros(left), micros(age)
		all = append(all, r)
		return nil
	})
	return all, err
}

func (t *tables) body(ctx context.Context, seq, enqueued int64) (body []byte, err error) {
	err = query(ctx, t.db, t.queries.body, values{"seq": seq, "enqueued": enqueued}, func(rows *sql.Rows) error { return rows.Scan(&body) })
	return body, err
}
