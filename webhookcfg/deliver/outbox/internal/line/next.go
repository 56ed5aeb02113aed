package line

import "time"

// Next returns when the line has something to do without an event; zero if never.
func (l *Line) Next() time.Time {
	at := l.alarm.next
	if len(l.alarm.all) > 0 {
		at = earliest(at, l.alarm.all[0].at)
	}
	return earliest(earliest(at, l.rest), l.nextLook)
}

// IsIdle reports whether nothing is in the window, and there's nothing to ask for before Next.
func (l *Line) IsIdle(now time.Time) bool {
	return len(l.rows) == 0 && l.asked == nil && !l.listing && len(l.asks) == 0 && !l.rest.After(now) && !l.groupsAreDue(now)
}

// IsBehind reports whether the window has more than the client has slots.
func (l *Line) IsBehind() bool { return len(l.rows)-l.leaving > l.limits.PerClient }

// IsWritten reports whether nothing that leaves the window has to be written.
func (l *Line) IsWritten() bool { return l.leaving == 0 }

func (l *Line) groupsAreDue(now time.Time) bool {
	if l.alone && l.base.isPaused(now) {
		return false
	}
	for _, id := range []Group{Fresh, Again} {
		if g := l.groups[id]; g != nil && g.isDue(now) {
			return true
		}
	}
	return false
}

// IsShut reports whether nothing that's enqueued from here on can go before Next: the client has
// just a base, and that is paused.
func (l *Line) IsShut(now time.Time) bool { return l.alone && l.base.isPaused(now) }
