package outbox

import "slices"

// Order says what the notifications of one entity wait for.
type Order uint8

// The orders. Notifications of different entities never wait for each other.
const (
	// EachEntity sends the notifications of an entity one after another, in the order in
	// which they were enqueued. While one waits for a retry, the later ones go ahead.
	EachEntity Order = iota
	// InOrder is EachEntity, but later ones never go ahead. If a receiver fails, its entities
	// get nothing until their first notification is delivered or given up, which with the
	// standard schedule can take 76 hours. As long as other entities have something to send, it
	// costs nothing else: with one attempt in ten failing, a backlog goes out as fast as in the
	// other orders, with as many reads.
	InOrder
	// AnyOrder sends as many notifications of an entity at a time as the limits allow.
	AnyOrder
)

// entity has the messages of an entity, in order. The first one is queued or started, the
// others wait for it.
type entity struct{ messages []*message }

// joinEntity adds a message to those of its entity, and reports whether it waits for none of them.
func (l *line) joinEntity(m *message) bool {
	if l.order == AnyOrder {
		return true
	}
	e := l.entities[m.entity]
	if e == nil {
		e = &entity{}
		l.entities[m.entity] = e
	}
	e.messages = append(e.messages, m)
	return len(e.messages) == 1
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

// stall is what the later notifications of an entity wait for: an earlier one that is to be sent
// again.
type stall struct {
	seq      int64     // of that one
	next     *position // the first one without an attempt that waits and isn't in memory
	hostport string    // its receiver
	retries  bool      // later ones that are to be sent again wait, too
	missing  bool      // the read of all retries hasn't found it yet
}

// isStalled reports whether a notification that was read must wait for an earlier one of its
// entity.
func (l *line) isStalled(r row) bool {
	s := l.stalled[r.entity]
	if s == nil || r.seq <= s.seq {
		return false
	}
	if r.due > 0 {
		s.retries = true
	} else {
		s.skip(r.position, l.routes[r.entity].hostport)
	}
	return true
}

func (s *stall) skip(p position, hostport string) {
	if s.hostport = hostport; s.next == nil || p.compare(*s.next) < 0 {
		s.next = &p
	}
}

// stall makes the later notifications of an entity wait for one. It returns those in memory
// that must be written as seen.
func (l *line) stall(entity string, seq int64) (seen []outcome) {
	s := l.stalled[entity]
	if s == nil {
		s = &stall{seq: seq}
		l.stalled[entity] = s
		if !l.rescan.IsZero() {
			s.skip(position{}, l.routes[entity].hostport) // what waits isn't known yet
		}
	}
	s.retries = s.retries || s.seq != seq
	s.seq, s.missing = min(s.seq, seq), false
	e := l.entities[entity]
	if e == nil {
		return nil
	}
	for _, m := range slices.Backward(slices.Clone(e.messages)) {
		if m.state != queued || m.seq <= seq {
			continue
		}
		unseen, fresh := m.unseen, l.fresh
		s.skip(m.position, m.receiver.hostport)
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
	s := l.stalled[entity]
	if s == nil || s.seq != seq {
		return
	}
	delete(l.stalled, entity)
	if s.next != nil {
		l.receiver(route{hostport: s.hostport}).skip(*s.next)
	}
	if s.retries {
		l.again[zoneRetry] = &position{due: retriesStart.due}
	}
}

// startRetries starts to look for what entities wait for, in a read of all retries.
func (l *line) startRetries() {
	for _, s := range l.stalled {
		s.missing = true
	}
}

// endRetries lets entities go on that wait for a notification that is gone.
func (l *line) endRetries() {
	for entity, s := range l.stalled {
		if s.missing && !l.isKnown(s.seq) {
			l.unstall(entity, s.seq)
		}
	}
}
