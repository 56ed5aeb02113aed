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
	// standard schedule can take 76 hours.
	InOrder
	// AnyOrder sends as many notifications of an entity at a time as the limits allow.
	AnyOrder
)

// entity has the messages of an entity, in order. The first one is queued or started, the
// others wait for it.
type entity struct{ messages []*message }

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
