package outbox

import (
	"maps"
	"slices"
	"time"

	"example.com/go-webhookcfg/webhookcfg/deliver"
)

// room is how many notifications of a receiver a line holds in memory. That's what receivers of
// 10 milliseconds get while the next ones are read.
const room = 64

// receiver is a host and port that the client's webhooks lead to, or what an entity waits for
// after a failure on our side.
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

	isFailing bool // it's only for an entity for which our side has failed
}

// skip records that a message is in the tables only.
func (r *receiver) skip(p position) {
	if s := &r.skipped[p.zone()]; *s == nil || p.compare(**s) < 0 {
		*s = &p
	}
}

// reread forgets what was skipped between the start of a read and next, since it's known now. The
// rest of the zone starts at next; nil: there's none.
func (r *receiver) reread(from position, next *position) {
	s := &r.skipped[from.zone()]
	if *s != nil && from.compare(**s) <= 0 && (next == nil || (*s).compare(*next) < 0) {
		*s = next
	}
}

// takes reports whether the message at a position can come into memory: there's room, and
// nothing before it stayed in the tables.
func (r *receiver) takes(p position, now time.Time) bool {
	s := r.skipped[p.zone()]
	return r.held < room && !r.blocked.After(now) && (s == nil || p.compare(*s) < 0)
}

// receiver returns the receiver of a route. It isn't blocked by a pause from before the webhook
// was set.
func (l *line) receiver(to route) *receiver {
	r := l.receivers[to.hostport]
	if r == nil {
		r = &receiver{hostport: to.hostport, limit: l.perClient}
		if to.hostport != "" && to.until.IsZero() {
			k := l.known(to.hostport)
			r.limit, r.blocked, r.since = max(k.Limit, 1), k.PausedUntil, k.Since
			if l.earlier != nil && l.wasPaused(k) {
				r.skip(*l.earlier) // what waits for it isn't known yet, and comes first
			}
		}
		l.receivers[to.hostport] = r
	}
	switch {
	case !to.until.IsZero():
		r.blocked, r.isFailing = to.until, true
	case to.since.After(r.since):
		r.blocked, r.since = time.Time{}, to.since
	}
	return r
}

// wasPaused reports whether notifications may wait for a receiver since before the line was
// claimed.
func (l *line) wasPaused(known deliver.Receiver) bool {
	p := l.pauses[known.HostPort]
	return !known.PausedUntil.IsZero() || !p.Until.IsZero() || len(l.pauses) >= maxPauses
}

// receiver returns what the sender knows about a receiver.
func (p *process) receiver(client, hostport string) deliver.Receiver {
	return contain(p.Outbox, func() deliver.Receiver { return p.sender.Receiver(client, hostport) },
		deliver.Receiver{Client: client, HostPort: hostport, Limit: 1})
}

// settle forgets a receiver that has nothing.
func (l *line) settle(r *receiver, now time.Time) {
	if r.held == 0 && r.skipped == [2]*position{} && !r.blocked.After(now) {
		delete(l.receivers, r.hostport)
	}
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

// hasTurn reports whether a message could start.
func (l *line) hasTurn(now time.Time) bool {
	return l.underway < l.perClient && slices.ContainsFunc(l.turns, func(r *receiver) bool {
		return len(r.queue) > 0 && r.underway < r.limit && !r.blocked.After(now)
	})
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

// end ends the attempt of a message.
func (l *line) end(m *message) {
	l.event()
	l.underway--
	m.receiver.underway--
	l.takeTurn(m.receiver)
}

// move brings a message to another receiver.
func (l *line) move(m *message, to *receiver, now time.Time) {
	to.held++
	m.receiver.held--
	l.settle(m.receiver, now)
	m.receiver = to
}

// pause is what is known about a receiver that failed.
type pause struct {
	HostPort string    `json:"host"`
	Failures int       `json:"failures"`
	Length   int64     `json:"pause,omitempty"` // in microseconds
	Until    time.Time `json:"until,omitzero"`
	Since    time.Time `json:"since,omitzero"`
}

const (
	maxPauses = 128
	// saveEvery is how often the pauses of a line are written, since each failure changes them.
	saveEvery = time.Second
)

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

func (l *line) pauseList() []pause { return slices.Collect(maps.Values(l.pauses)) }

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

// unblock gives a turn to what waited for a time that has come.
func (l *line) unblock(now time.Time) {
	if !l.resume.After(now) {
		l.resume = time.Time{}
	}
	if !l.readAfter.After(now) {
		l.readAfter = time.Time{}
	}
	for _, r := range l.receivers {
		if !r.blocked.IsZero() && !r.blocked.After(now) {
			r.blocked = time.Time{}
			l.event()
			l.takeTurn(r)
			l.settle(r, now)
		}
	}
	if l.woken && !now.Before(l.rested) {
		l.wake(now, staleness)
	}
	if !l.rescan.IsZero() && !l.rescan.After(now) {
		l.rescan = time.Time{}
		l.readAll()
	}
	if !l.retry.IsZero() && !l.retry.After(now) {
		l.retry = time.Time{}
		l.event()
		l.again[zoneRetry] = &position{due: retriesStart.due}
	}
}
