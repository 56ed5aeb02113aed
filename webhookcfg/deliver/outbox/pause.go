package outbox

import (
	"maps"
	"slices"
	"time"

	"example.com/go-webhookcfg/webhookcfg/deliver"
)

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
