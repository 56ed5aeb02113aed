package outbox

import (
	"slices"
	"time"

	"example.com/go-webhookcfg/webhookcfg/deliver"
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
	unsent    int         // held, without those that have ended or are parked
	underway  int

	stalled map[string]*stall // entities whose notifications wait for one of them, with InOrder

	pauses  map[string]pause // what to tell the next process
	changed bool             // since they were written

	// What to read. Fresh: there are fresh notifications. Again: read all waiting ones from
	// here, for each zone, since it isn't known which receivers they're for.
	fresh    bool
	again    [2]*position
	earlier  *position // what waited when the line was claimed isn't known from here on; nil: it is
	rescan   time.Time // when to read all waiting ones again; zero: never
	retry    time.Time // when the next retry is due; zero: none known
	rested   time.Time // no wake makes it read all that waits before
	woken    bool      // it was woken since, and reads all that waits then
	resume   time.Time // nothing starts before: our side has failed
	failures int       // of our side in a row, for whichever entity
	worked   time.Time // when our side last worked
	full     bool      // the last read found as many fresh ones as it asked for
	ahead    time.Time // until then, retries needn't be due if their webhook was set since
	stuck    *receiver // had no room for a fresh one
	wasFresh bool      // the last read was of fresh ones
	unseen   int       // fresh ones in memory
	marking  int       // written as seen soon, unless something else became of them
	parking  int       // of the unseen, those that wait to be written as seen

	fruitless int       // reads in a row that took nothing in, without an event
	readAfter time.Time // nothing is read before, since it would take nothing in again
	eventful  bool      // there was an event since the read under way started

	settled map[int64]bool // written since the read under way started; nil if there's none
	missed  []*message     // of them, those that were parked: reads perhaps didn't find them
}

// message is a notification in memory.
type message struct {
	row
	receiver *receiver
	unseen   bool      // fresh in the tables
	marked   bool      // about to be written as seen
	taken    time.Time // when it was read
	state    messageState
}

type messageState uint8

const (
	queued messageState = iota
	started
	ended  // and waits until this is written
	parked // can't be kept in memory; waits until it's written as seen
)

func newLine(client string, perClient int, order Order) *line {
	return &line{
		client: client, perClient: perClient, order: order,
		held: make(map[int64]*message), entities: make(map[string]*entity),
		routes: make(map[string]route), receivers: make(map[string]*receiver),
		pauses: make(map[string]pause), stalled: make(map[string]*stall),
	}
}

// drop forgets a message that is queued, or waits for another one of its entity.
func (l *line) drop(m *message) {
	m.receiver.held--
	l.unsent--
	if i := slices.Index(m.receiver.queue, m); i >= 0 {
		m.receiver.queue = slices.Delete(m.receiver.queue, i, i+1)
	}
	l.leaveEntity(m)
	if m.marked {
		// Reads don't find it before that is written, and then not as a fresh one.
		m.state = parked
		m.unseen = true
		l.unseen++
		l.parking++
		return
	}
	delete(l.held, m.seq)
	if m.unseen {
		l.unseen--
		l.fresh = true
	}
}

// add takes a message into memory.
func (l *line) add(m *message, r *receiver) {
	m.receiver = r
	r.held++
	l.held[m.seq] = m
	l.unsent++
	if m.unseen {
		l.unseen++
	}
	if l.joinEntity(m) {
		l.enqueue(m)
	}
}

func earliest(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

// ended ends a message's attempt, whose outcome is about to be written. It returns what else
// is.
func (l *line) ended(m *message, retries bool, now time.Time) (seen []outcome) {
	l.end(m)
	m.state = ended
	m.receiver.held--
	l.unsent--
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

// isIdle reports whether nothing is under way or being written.
func (l *line) isIdle() bool {
	if l.marking > 0 {
		return false
	}
	for _, m := range l.held {
		if m.state != queued {
			return false
		}
	}
	return true
}

// written reacts to outcomes that were written.
func (l *line) written(outcomes []outcome, now time.Time) {
	l.event()
	for _, o := range outcomes {
		if o.isSeen() {
			l.marking--
		}
		m := l.held[o.Seq]
		if m == nil {
			continue
		}
		m.marked = m.marked && !o.isSeen()
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
			if l.missed = append(l.missed, m); l.settled == nil {
				l.endRead()
			}
		case ended:
			if o.isSeen() {
				continue // what became of it is yet to be written
			}
			delete(l.held, o.Seq)
			if o.State != stateWaiting {
				l.unstall(m.entity, o.Seq)
			} else {
				if s := l.stalled[m.entity]; s != nil && s.seq == o.Seq {
					s.missing = false
				}
				l.retry = earliest(l.retry, now.Add(time.Duration(o.Delay)*time.Microsecond))
			}
		}
	}
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

// isFailing reports whether an entity waits after a failure on our side. Nobody else would know.
func (l *line) isFailing() bool {
	for _, r := range l.receivers {
		if r.isFailing {
			return true
		}
	}
	return false
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
	consider(l.readAfter)
	if l.woken {
		consider(l.rested)
	}
	return at
}
