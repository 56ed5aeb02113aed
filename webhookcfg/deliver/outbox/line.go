package outbox

import (
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"example.com/go-webhookcfg/webhookcfg/deliver"
)

const (
	// room is how many notifications of a receiver a line holds in memory. That's what
	// receivers of 10 milliseconds get while the next ones are read.
	room = 64
	// page is how many notifications a line reads at a time.
	page = 128
	// A line that looks past what it can't send reads more at a time, but waits between the
	// reads, so that a backlog never takes much of the process.
	widePage = 512
	lookWait = 50 * time.Millisecond
	// keepUnseen is how long a notification in memory stays fresh in the tables. Most are
	// delivered by then, and need no other write than that.
	keepUnseen = 100 * time.Millisecond
	// trust is how long a line trusts that an entity's webhook has the same receiver. Only
	// the grouping depends on it: the webhook is looked up again for each attempt.
	trust = 5 * time.Second
)

// line decides what a client's notifications do next: it has the notifications in memory,
// grouped by receiver and by entity, and knows where in the tables the others are. It does no
// I/O and has no lock and no clock.
type line struct {
	client    string
	perClient int
	order     Order
	known     func(hostport string) deliver.Receiver // what the sender knows

	held      map[int64]*message // in memory: queued, under way, or ended but not written yet
	entities  map[string]*entity // with held messages, unless in any order
	routes    map[string]route
	receivers map[string]*receiver
	turns     []*receiver // those with queued messages
	underway  int

	// stalled has the number of the notification that each entity waits for, with InOrder.
	stalled map[string]int64

	pauses  map[string]pause // what to tell the next process
	changed bool             // since they were written

	// What to read. Fresh: there are fresh notifications. Again: read all waiting ones from
	// here, for each zone, since it isn't known which receivers they're for.
	fresh   bool
	again   [2]*position
	rescan  time.Time // when to read all waiting ones again; zero: never
	retry   time.Time // when the next retry is due; zero: none known
	resume  time.Time // nothing starts before: our side has failed
	lookAt  time.Time // no read before, unless it's needed for free slots
	ahead   time.Time // until then, retries needn't be due if their webhook was set since
	stuck   *receiver // had no room for a fresh one
	unseen  int       // fresh ones in memory
	parking int       // of them, those that wait to be written as seen

	settled map[int64]bool // written since the read under way started; nil if there's none
}

// Notifications wait in two zones: those without an attempt, and retries.
const (
	zoneFirst = iota
	zoneRetry
)

func (p position) zone() int {
	if p.due > 0 {
		return zoneRetry
	}
	return zoneFirst
}

// message is a notification in memory.
type message struct {
	row
	receiver *receiver
	unseen   bool      // fresh in the tables
	taken    time.Time // when it was read
	state    messageState
}

type messageState uint8

// State numbers in the tables.
const (
	stateFresh = iota
	stateWaiting
	stateDelivered
	stateGivenUp
	stateDropped
)

const (
	queued messageState = iota
	started
	ended  // and waits until this is written
	parked // can't be kept in memory; waits until it's written as seen
)

// entity has the messages of an entity, in order. The first one is queued or started, the
// others wait for it.
type entity struct{ messages []*message }

// route is the receiver of an entity's webhook.
type route struct {
	hostport string // "" if there's nothing to send to
	since    time.Time
	at       time.Time
}

// receiver is a host and port that the client's webhooks lead to.
type receiver struct {
	hostport string
	queue    []*message
	held     int // queued, under way, or waiting for another one of the entity
	underway int
	limit    int
	blocked  time.Time    // nothing starts before
	since    time.Time    // when the latest of its webhooks was set
	skipped  [2]*position // the first one in the tables that isn't in memory, for each zone
	inTurn   bool
}

func newLine(client string, perClient int, order Order) *line {
	return &line{
		client: client, perClient: perClient, order: order,
		held: make(map[int64]*message), entities: make(map[string]*entity),
		routes: make(map[string]route), receivers: make(map[string]*receiver),
		pauses: make(map[string]pause), stalled: make(map[string]int64),
	}
}

// unrouted returns the entities of rows whose receiver must be looked up.
func (l *line) unrouted(rows []row, now time.Time) (entities []string) {
	seen := make(map[string]bool)
	for _, r := range rows {
		if at, ok := l.routes[r.entity]; (!ok || now.Sub(at.at) > trust) && !seen[r.entity] {
			seen[r.entity] = true
			entities = append(entities, r.entity)
		}
	}
	return entities
}

// forget bounds what the line remembers of entities. It's called before rows are looked up.
func (l *line) forget() {
	if len(l.routes) > maxRoutes {
		clear(l.routes)
	}
}

const maxRoutes = 4096

// route remembers the receiver of an entity's webhook.
func (l *line) route(entity, hostport string, since, now time.Time) {
	l.routes[entity] = route{hostport, since, now}
}

// receiver returns the receiver of a route. It isn't blocked by a pause from before the webhook
// was set.
func (l *line) receiver(to route) *receiver {
	r := l.receivers[to.hostport]
	if r == nil {
		r = &receiver{hostport: to.hostport, limit: l.perClient}
		if to.hostport != "" {
			k := l.known(to.hostport)
			r.limit, r.blocked, r.since = max(k.Limit, 1), k.PausedUntil, k.Since
		}
		l.receivers[to.hostport] = r
	}
	if to.since.After(r.since) {
		r.blocked, r.since = time.Time{}, to.since
	}
	return r
}

// settle forgets a receiver that has nothing.
func (l *line) settle(r *receiver, now time.Time) {
	if r.held == 0 && r.skipped == [2]*position{} && !r.blocked.After(now) {
		delete(l.receivers, r.hostport)
	}
}

// wake reacts to a webhook that was set, or to anything else that may have changed where
// notifications go. It costs the same whatever waits.
func (l *line) wake(now time.Time, staleness time.Duration) {
	clear(l.routes)
	l.ahead = now.Add(staleness)
	for _, r := range l.receivers {
		r.blocked = time.Time{} // the next attempt asks the sender, who knows about the pause
		l.release(r)
		r.skipped = [2]*position{}
		l.settle(r, now)
	}
	l.again = [2]*position{{}, {due: 1}}
	l.resume, l.lookAt = time.Time{}, time.Time{}
}

// release forgets the queued messages of a receiver. They stay in the tables.
func (l *line) release(r *receiver) {
	for _, m := range slices.Clone(r.queue) {
		if l.order == AnyOrder {
			l.drop(m)
			continue
		}
		for _, m := range slices.Backward(slices.Clone(l.entities[m.entity].messages)) {
			l.drop(m)
		}
	}
}

// drop forgets a message that is queued, or waits for another one of its entity.
func (l *line) drop(m *message) {
	m.receiver.held--
	if i := slices.Index(m.receiver.queue, m); i >= 0 {
		m.receiver.queue = slices.Delete(m.receiver.queue, i, i+1)
	}
	l.leaveEntity(m)
	delete(l.held, m.seq)
	if m.unseen {
		l.unseen--
		l.fresh = true
	}
}

func (l *line) leaveEntity(m *message) {
	e := l.entities[m.entity]
	if e == nil {
		return
	}
	if i := slices.Index(e.messages, m); i >= 0 {
		e.messages = slices.Delete(e.messages, i, i+1)
	}
	if len(e.messages) == 0 {
		delete(l.entities, m.entity)
	}
}

// skip records that a message is in the tables only.
func (r *receiver) skip(p position) {
	if s := &r.skipped[p.zone()]; *s == nil || p.compare(**s) < 0 {
		*s = &p
	}
}

// takes reports whether the message at a position can come into memory: there's room, and
// nothing before it stayed in the tables.
func (r *receiver) takes(p position, now time.Time) bool {
	s := r.skipped[p.zone()]
	return r.held < room && !r.blocked.After(now) && (s == nil || p.compare(*s) < 0)
}

// add takes a message into memory.
func (l *line) add(m *message, r *receiver) {
	m.receiver = r
	r.held++
	l.held[m.seq] = m
	if m.unseen {
		l.unseen++
	}
	if l.order != AnyOrder {
		e := l.entities[m.entity]
		if e == nil {
			e = &entity{}
			l.entities[m.entity] = e
		}
		e.messages = append(e.messages, m)
		if len(e.messages) > 1 {
			return
		}
	}
	l.enqueue(m)
}

func (l *line) enqueue(m *message) {
	r := m.receiver
	r.queue = append(r.queue, m)
	l.takeTurn(r)
}

func (l *line) takeTurn(r *receiver) {
	if !r.inTurn && len(r.queue) > 0 {
		r.inTurn = true
		l.turns = append(l.turns, r)
	}
}

// addFresh takes in fresh rows, whose receivers must be known. It stops at the first one
// without room, unless past is set: then it returns those that must be written as seen, so
// that the next read gets the ones behind them.
func (l *line) addFresh(rows []row, limit int, past bool, now time.Time) (seen []outcome) {
	more := len(rows) >= limit
	l.stuck = nil
	for _, row := range rows {
		if l.isKnown(row.seq) {
			continue
		}
		at := l.routes[row.entity]
		r := l.receiver(at)
		m := &message{row: row, receiver: r, unseen: true, taken: now}
		switch {
		case l.isStalled(row):
			seen = append(seen, l.parkFresh(m))
		case r.takes(row.position, now):
			l.add(m, r)
		case past:
			r.skip(row.position)
			seen = append(seen, l.parkFresh(m))
		case l.stuck == nil:
			l.stuck = r
			more = true
		}
	}
	l.fresh = more
	if past || l.stuck != nil {
		l.lookAt = now.Add(lookWait)
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

// isStalled reports whether an earlier notification of the entity waits for a retry, and all
// later ones wait for it.
func (l *line) isStalled(r row) bool {
	seq, ok := l.stalled[r.entity]
	return ok && r.seq > seq
}

// stall makes the later notifications of an entity wait for one. It returns those in memory
// that must be written as seen.
func (l *line) stall(entity string, seq int64) (seen []outcome) {
	if first, ok := l.stalled[entity]; !ok || seq < first {
		l.stalled[entity] = seq
	}
	e := l.entities[entity]
	if e == nil {
		return nil
	}
	for _, m := range slices.Backward(slices.Clone(e.messages)) {
		if m.state != queued || m.seq <= seq {
			continue
		}
		unseen, fresh := m.unseen, l.fresh
		l.drop(m)
		if l.fresh = fresh; unseen {
			seen = append(seen, l.parkFresh(m))
		}
	}
	if e := l.entities[entity]; e != nil && e.messages[0].state == queued && !slices.Contains(e.messages[0].receiver.queue, e.messages[0]) {
		l.enqueue(e.messages[0])
	}
	return seen
}

// unstall lets the later notifications of an entity go on.
func (l *line) unstall(entity string, seq int64) {
	if l.stalled[entity] == seq && l.order == InOrder {
		delete(l.stalled, entity)
		l.again = [2]*position{{}, {due: 1}}
	}
}

// seen is the outcome that a message waits.
func (m *message) seen() outcome {
	return outcome{Seq: m.seq, State: stateWaiting, Attempts: m.attempts}
}

// late returns messages that have been in memory for a while, so that they are written as
// seen.
func (l *line) late(now time.Time) (seen []outcome) {
	if l.unseen == l.parking {
		return nil
	}
	for _, m := range l.held {
		if m.unseen && m.state < ended && now.Sub(m.taken) >= keepUnseen {
			m.unseen = false
			l.unseen--
			seen = append(seen, m.seen())
		}
	}
	return seen
}

// addWaiting takes in rows that were read from a position. It returns where to read on, or
// nil if that was the last one that's due.
func (l *line) addWaiting(from position, rows []row, limit int, now time.Time) {
	zone := from.zone()
	var next *position
	if len(rows) >= limit {
		next = &position{rows[len(rows)-1].due, rows[len(rows)-1].seq + 1}
	}
	for i, row := range rows {
		if row.zone() != zone {
			rows, next = rows[:i], nil
			break
		}
		if row.left > 0 && !l.ahead.After(now) && l.order != InOrder {
			l.retry = earliest(l.retry, now.Add(row.left))
			rows, next = rows[:i], nil
			break
		}
	}
	if len(rows) > 0 {
		l.lookAt = now.Add(lookWait / 4)
	}
	// What the receivers skipped in this range is known now.
	for _, r := range l.receivers {
		if s := r.skipped[zone]; s != nil && from.compare(*s) <= 0 && (next == nil || s.compare(*next) < 0) {
			r.skipped[zone] = nil
			if next != nil {
				r.skipped[zone] = next
			}
		}
	}
	if a := l.again[zone]; a != nil && from.compare(*a) <= 0 {
		l.again[zone] = next
	}
	for _, row := range rows {
		if l.isKnown(row.seq) {
			continue
		}
		at := l.routes[row.entity]
		if row.due > 0 && l.order == InOrder {
			l.stall(row.entity, row.seq)
		}
		if row.left > 0 && !(l.ahead.After(now) && at.since.UnixMicro() > row.since) {
			l.retry = earliest(l.retry, now.Add(row.left))
			continue
		}
		if l.isStalled(row) {
			continue // it's read again when the first one has ended
		}
		r := l.receiver(at)
		s := r.skipped[zone]
		if r.held < room && !r.blocked.After(now) && (s == nil || s == next || row.compare(*s) < 0) {
			l.add(&message{row: row, taken: now}, r)
		} else {
			r.skip(row.position)
		}
	}
	for _, r := range l.receivers {
		l.settle(r, now)
	}
}

func earliest(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

// next returns the message to send next, and counts it as started; nil if there's none.
// Receivers take turns.
func (l *line) next(now time.Time) *message {
	if now.Before(l.resume) {
		return nil
	}
	for range len(l.turns) {
		if l.underway >= l.perClient {
			return nil
		}
		r := l.turns[0]
		l.turns = l.turns[1:]
		r.inTurn = false
		if len(r.queue) == 0 {
			continue
		}
		if r.underway >= r.limit || r.blocked.After(now) {
			continue // it comes back when an attempt ends, or with the time
		}
		m := r.queue[0]
		r.queue = r.queue[1:]
		m.state = started
		r.underway++
		l.underway++
		l.takeTurn(r)
		return m
	}
	return nil
}

// unblock gives a turn to the receivers whose time has come.
func (l *line) unblock(now time.Time) {
	for _, r := range l.receivers {
		if !r.blocked.IsZero() && !r.blocked.After(now) {
			r.blocked = time.Time{}
			l.takeTurn(r)
			l.settle(r, now)
		}
	}
	if !l.rescan.IsZero() && !l.rescan.After(now) {
		l.rescan = time.Time{}
		l.again = [2]*position{{}, {due: 1}}
	}
	if !l.retry.IsZero() && !l.retry.After(now) {
		l.retry = time.Time{}
		l.again[zoneRetry] = &position{due: 1}
	}
}

// end ends the attempt of a message.
func (l *line) end(m *message) {
	l.underway--
	m.receiver.underway--
	l.takeTurn(m.receiver)
}

// deferred puts a message back that got no slot.
func (l *line) deferred(m *message, hostport string, r deliver.Result, now time.Time) {
	l.end(m)
	m.state = queued
	if r.Reason == deliver.ReasonUnavailable {
		l.resume = now.Add(jitter(time.Second))
	} else {
		l.route(m.entity, hostport, r.Webhook.Since, now)
		if to := l.receiver(l.routes[m.entity]); to != m.receiver {
			l.move(m, to, now)
		}
		m.receiver.blocked = now.Add(max(r.Wait, time.Millisecond))
	}
	m.receiver.queue = slices.Insert(m.receiver.queue, 0, m)
	if m.receiver.blocked.Sub(now) > time.Second {
		l.park(m.receiver)
	}
	l.takeTurn(m.receiver)
}

// move brings a message to another receiver.
func (l *line) move(m *message, to *receiver, now time.Time) {
	m.receiver.held--
	l.settle(m.receiver, now)
	m.receiver = to
	to.held++
}

// park forgets the messages of a receiver that is paused, except for those that are under
// way. They stay in the tables.
func (l *line) park(r *receiver) {
	for _, m := range slices.Clone(r.queue) {
		all := []*message{m}
		if e := l.entities[m.entity]; e != nil {
			all = slices.Clone(e.messages)
		}
		if slices.ContainsFunc(all, func(m *message) bool { return m.unseen }) {
			continue // they're written as seen first
		}
		for _, m := range all {
			m.receiver.skip(m.position)
			l.drop(m)
		}
	}
}

// ended ends a message's attempt, whose outcome is about to be written. It returns what else
// is.
func (l *line) ended(m *message, retries bool, now time.Time) (seen []outcome) {
	l.end(m)
	m.state = ended
	m.receiver.held--
	l.settle(m.receiver, now)
	l.leaveEntity(m)
	if l.order == InOrder && retries {
		return l.stall(m.entity, m.seq)
	}
	if e := l.entities[m.entity]; e != nil {
		l.enqueue(e.messages[0])
	}
	return nil
}

// observe takes over what the sender knows about a receiver after an attempt.
func (l *line) observe(known deliver.Receiver, now time.Time) {
	r := l.receivers[known.HostPort]
	if r != nil {
		r.limit = max(known.Limit, 1)
		r.blocked = time.Time{}
		if known.PausedUntil.After(now) {
			r.blocked = known.PausedUntil
			l.park(r)
		}
		l.takeTurn(r)
		l.settle(r, now)
	}
	if known.Failures == 0 && !known.PausedUntil.After(now) {
		if _, ok := l.pauses[known.HostPort]; ok {
			delete(l.pauses, known.HostPort)
			l.changed = true
		}
		return
	}
	if _, ok := l.pauses[known.HostPort]; !ok && len(l.pauses) >= maxPauses {
		return // forgetting a pause costs five attempts
	}
	l.changed = true
	l.pauses[known.HostPort] = pause{known.HostPort, known.Failures, known.Pause.Microseconds(), known.PausedUntil, known.Since}
}

const maxPauses = 128

func (l *line) pauseList() []pause { return slices.Collect(maps.Values(l.pauses)) }

// isIdle reports whether nothing is under way or being written.
func (l *line) isIdle() bool {
	for _, m := range l.held {
		if m.state != queued {
			return false
		}
	}
	return true
}

// written reacts to outcomes that were written.
func (l *line) written(outcomes []outcome, now time.Time) {
	for _, o := range outcomes {
		m := l.held[o.Seq]
		if m == nil {
			continue
		}
		if l.settled != nil {
			l.settled[o.Seq] = true
		}
		if m.unseen {
			m.unseen = false
			l.unseen--
		}
		switch m.state {
		case parked:
			l.parking--
			delete(l.held, o.Seq)
		case ended:
			delete(l.held, o.Seq)
			if o.State != stateWaiting {
				l.unstall(m.entity, o.Seq)
			} else {
				l.retry = earliest(l.retry, now.Add(time.Duration(o.Delay)*time.Microsecond))
			}
		}
	}
}

// startRead starts to remember what is written while a read is under way. What it returns can
// be from before that.
func (l *line) startRead() { l.settled = make(map[int64]bool) }

func (l *line) endRead() { l.settled = nil }

// isKnown reports whether the row of a read is in memory, or was while the read was under way.
func (l *line) isKnown(seq int64) bool { return l.held[seq] != nil || l.settled[seq] }

// read is what to read next from the tables.
type read struct {
	fresh bool
	past  bool     // fresh, and look past what there's no room for
	from  position // if not fresh
	limit int
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

// nextRead returns what to read next, and whether there is anything to read now. A read that
// only looks past a backlog waits for lookAt.
func (l *line) nextRead(now time.Time) (rd read, ok bool) {
	if now.Before(l.resume) {
		return read{}, false
	}
	if from := l.again[zoneRetry]; from != nil && l.order == InOrder && l.parking == 0 {
		return read{from: *from, limit: widePage}, true // others may have to wait for these
	}
	if l.parking == 0 {
		if from := l.refill(now); from != nil {
			return read{from: *from, limit: page}, true
		}
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
		return read{fresh: true, limit: l.unseen + page}, true
	}
	if now.Before(l.lookAt) || l.parking > 0 {
		return read{}, false
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
		for _, s := range r.skipped {
			if s != nil && (from == nil || s.compare(*from) < 0) {
				from = s
			}
		}
	}
	return from
}

// isQuiet reports whether nothing is under way or being written, and nothing is to be read.
func (l *line) isQuiet(now time.Time) bool {
	for _, m := range l.held {
		if m.state != queued || !m.receiver.blocked.After(now) {
			return false
		}
	}
	return !l.fresh && l.again == [2]*position{} && l.refill(now) == nil
}

// nextTime returns when the line has something to do without an event; zero if never.
func (l *line) nextTime(now time.Time) (at time.Time) {
	consider := func(t time.Time) {
		if !t.IsZero() {
			at = earliest(at, t)
		}
	}
	for _, r := range l.receivers {
		consider(r.blocked)
	}
	consider(l.retry)
	consider(l.rescan)
	consider(l.resume)
	if l.fresh || l.again != [2]*position{} {
		consider(l.lookAt)
	}
	return at
}

// jitter returns a random duration from d/2 to 3d/2.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d) }
