package line

import (
	"slices"
	"time"
)

// Start returns the notification whose attempt may start now, and counts it as under way; nil if
// there's none. The caller looks up its webhook and passes that to Confirm.
func (l *Line) Start(now time.Time) *Row {
	l.tick(now)
	if l.rest.After(now) || l.underWay >= l.limits.PerClient {
		return nil
	}
	// The base has every other turn, since most entities have no webhook of their own.
	if !l.wasBase {
		if r := l.startOf(l.base, now); r != nil {
			l.wasBase = true
			return r
		}
	}
	l.wasBase = false
	for i := 0; i < len(l.turns); {
		w := l.turns[i]
		if len(w.fresh)+len(w.tried) == 0 {
			w.inTurn = false
			l.turns = slices.Delete(l.turns, i, i+1)
			continue
		}
		if r := l.startOf(w, now); r != nil {
			l.turns = append(slices.Delete(l.turns, i, i+1), w)
			return r
		}
		i++
	}
	return l.startOf(l.base, now)
}

// startOf starts a notification of a webhook, if it may.
func (l *Line) startOf(w *webhook, now time.Time) *Row {
	if len(w.fresh)+len(w.tried) == 0 || !l.mayStart(w, now) {
		return nil
	}
	e := l.pick(w)
	if e == nil {
		return nil
	}
	l.unready(e)
	e.isRunning = true
	r := e.rows[0]
	r.state = started
	l.hold(r)
	return r
}

// mayStart reports whether the pauses and limits allow another attempt at a webhook.
func (l *Line) mayStart(w *webhook, now time.Time) bool {
	h := w.host
	switch {
	case w.isPaused(now):
		l.alarmFor(w, w.opens())
		return false
	case w.pause.IsFailing() && w.underWay > 0, h.pause.IsFailing() && h.underWay > 0:
		return false
	case !w.works() && l.unproven >= max(l.limits.PerClient/2, 1):
		return false // the others' half
	}
	return h.name == "" || h.underWay < l.limits.PerHost
}

// pick returns the entity of a webhook that's next. Those with a notification that was tried before
// have half of the host's slots while others wait.
func (l *Line) pick(w *webhook) *entity {
	h := w.host
	isFull := h.fresh > 0 && h.tried >= max(l.limits.PerHost/2, 1)
	switch {
	case len(w.tried) > 0 && !isFull && (len(w.fresh) == 0 || !h.wasTried):
		h.wasTried = true
		return w.tried[0]
	case len(w.fresh) > 0:
		h.wasTried = false
		return w.fresh[0]
	}
	return nil
}

// hold takes slots for a notification.
func (l *Line) hold(r *Row) {
	w := r.of
	r.host, r.isUnproven, r.setting = w.host, !w.works(), w.setting
	l.underWay++
	w.underWay++
	w.host.underWay++
	if r.isTried {
		w.host.tried++
	}
	if r.isUnproven {
		l.unproven++
	}
}

// release gives back the slots of a notification.
func (l *Line) release(r *Row) {
	h := r.host
	r.host = nil
	l.underWay--
	r.of.underWay--
	h.underWay--
	if r.isTried {
		h.tried--
	}
	if r.isUnproven {
		l.unproven--
	}
	if h.webhooks == 0 && h.underWay == 0 && l.hosts[h.name] == h {
		delete(l.hosts, h.name)
	}
}

// Confirm takes in the webhook that was looked up for an attempt. It reports whether the attempt may
// be made there; otherwise the notification is as if it hadn't started.
func (l *Line) Confirm(r *Row, h Hook, now time.Time) (ok bool, writes []Write) {
	e := l.entities[r.Entity]
	was := r.of
	w := l.webhookOf(r.Entity, h, now)
	if w == was && w.host == r.host {
		r.setting = w.setting
		return true, nil
	}
	l.release(r)
	l.count(r, -1)
	r.of = w
	l.count(r, 1)
	if l.mayStart(w, now) {
		l.hold(r)
		return true, nil
	}
	return false, l.back(e, r, now)
}

// Cancel says that an attempt wasn't made.
func (l *Line) Cancel(r *Row, now time.Time) (writes []Write) {
	l.release(r)
	return l.back(l.entities[r.Entity], r, now)
}

// back puts back a notification that was about to be sent.
func (l *Line) back(e *entity, r *Row, now time.Time) (writes []Write) {
	r.state, e.isRunning = queued, false
	if e.of.isPaused(now) {
		return l.unload(e.of, now)
	}
	l.ready(e)
	return nil
}
