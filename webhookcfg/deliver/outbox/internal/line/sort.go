package line

import (
	"slices"
	"time"
)

// Answer takes in what was read: into the window, or, if it can't be there, into a group in which
// it's found again. It returns what to write.
func (l *Line) Answer(q *Question, a Answer, now time.Time) (writes []Write) {
	l.asked = nil
	if q.IsListing {
		l.list(a, now)
		return nil
	}
	for i, p := range q.Parts {
		found := a.Parts[i]
		isFull := len(found.Rows) >= p.Limit
		g := l.groups[p.Group]
		if g != nil && p.Entity == "" && !isFull && !g.more { // nothing was put back meanwhile
			g.isLeft, g.back = true, nil
		}
		if found.Next > 0 {
			l.expect(p.Group, p.entity, now.Add(found.Next))
		}
		for _, r := range found.Rows {
			if l.rows[r.Seq] != nil {
				continue
			}
			var w *Write
			if h, ok := a.Hooks[r.Entity]; ok {
				w = l.sort(&r, p, h, now)
			} else {
				w = l.unknown(&r, p, now)
			}
			if w != nil {
				writes = append(writes, *w)
			}
		}
		if isFull && !(p.Entity == "" && l.isAllLeft(g)) {
			l.again(p)
		}
		if g := l.groups[p.Group]; g != nil && p.Entity == "" {
			l.drain(g)
		}
	}
	return writes
}

// isAllLeft reports whether all of a group that's outside of the window is of entities that are left out
// of questions.
func (l *Line) isAllLeft(g *group) bool {
	if g == nil || !g.isLeft {
		return false
	}
	g.back = slices.DeleteFunc(g.back, func(e *entity) bool {
		if e.isOut() {
			e.leftIn(g.id)
		}
		return e.isOut()
	})
	return len(g.back) == 0
}

// list takes in a page of the groups in the tables.
func (l *Line) list(a Answer, now time.Time) {
	for _, f := range a.Groups {
		l.listed = f.Group
		if f.Group.isUnsorted() {
			continue // asked for anyway
		}
		switch h, ok := a.Hooks[f.Entity]; {
		case ok && f.Group.isOverride():
			l.webhookOf(f.Entity, h, now)
		case ok && !h.Override:
			l.webhookOf("", h, now)
		case !ok:
			l.look(f.Entity, now.Add(l.jitter(maxRest)))
			if f.Group.isOverride() {
				continue // it's found with the webhook
			}
		}
		if g := l.known(f.Group, f.Entity); g.isAll() || f.Wait <= 0 {
			l.mark(f.Group, f.Entity)
		} else {
			l.expect(f.Group, f.Entity, now.Add(f.Wait))
		}
	}
	l.listing = a.IsMore
}

// unknown makes an entity rest whose webhook couldn't be looked up. Its notifications stay where they
// are. If too many rest, this one goes to Again for a while, so that it doesn't stand in front of others.
func (l *Line) unknown(r *Row, p Part, now time.Time) *Write {
	w := l.current(r.Entity)
	e := l.entity(r.Entity, w)
	var delay time.Duration
	if e.rest.IsZero() {
		delay = l.fails(e, r, now)
	}
	switch {
	case e.rest.IsZero():
		l.rows[r.Seq] = r
		l.leave(r, w)
		r.to = Again
		l.settleEntity(e)
		return &Write{Row: r, Group: Again, Delay: delay}
	case p.Entity != "":
		l.again(p)
	default:
		e.leftIn(p.Group)
	}
	return nil
}

// sort decides where a notification goes that was read, and takes it into the window if there's
// room. Otherwise it stays in its group, if that's one that its webhook asks for, or moves to one.
func (l *Line) sort(r *Row, p Part, h Hook, now time.Time) *Write {
	w := l.webhookOf(r.Entity, h, now)
	e := l.entity(r.Entity, w)
	r.isTried = r.Group.IsTried() || r.Attempts > 0
	if r.Wait > 0 && w.owns(r.Group) {
		l.expect(r.Group, r.Entity, now.Add(r.Wait))
		l.settleEntity(e)
		return nil
	}
	if l.fits(e, r, now) {
		l.admit(e, r)
		return nil
	}
	if len(e.rows) >= roomEntity {
		l.crowd(e)
	}
	defer l.settleEntity(e)
	write := l.putOff(w, r)
	if e.isOut() {
		e.leftIn(r.stays())
	}
	return write
}

// fits reports whether a notification can come into the window.
func (l *Line) fits(e *entity, r *Row, now time.Time) bool {
	w := e.of
	switch {
	case w.isPaused(now), !e.rest.IsZero(), len(e.rows) >= roomEntity, l.room(w, r.isTried) <= 0:
		return false
	case r.Group == Fresh && (w.hasOutside() || slices.ContainsFunc(e.outside, isSorted)):
		return false // others of it have come before
	}
	return true
}

// admit takes a notification into the window.
func (l *Line) admit(e *entity, r *Row) {
	r.of, r.state = e.of, queued
	l.rows[r.Seq] = r
	e.rows = append(e.rows, r)
	l.count(r, 1)
	l.ready(e)
}

// putOff leaves a notification that isn't in the window in its group, if its webhook asks for
// that. Otherwise it moves to one, and stays in the window until this is written.
func (l *Line) putOff(w *webhook, r *Row) *Write {
	g := l.groups[r.Group]
	if isLeft := r.Group.isUnsorted() && l.alone && w == l.base || g != nil && g.of == w; isLeft {
		delete(l.rows, r.Seq)
		if e := l.entities[r.Entity]; e != nil && e.isOut() {
			e.leftIn(r.Group)
		} else {
			l.mark(r.Group, r.Entity)
		}
		return nil
	}
	l.rows[r.Seq] = r
	l.leave(r, w)
	if r.isMoving = !r.isTried; r.isMoving {
		w.moving++
	}
	r.to = groupOf(w.setting, w.isOverride, r.isTried)
	return &Write{Row: r, Group: r.to}
}

// leftIn says that a group has notifications of an entity that's left out of questions.
func (e *entity) leftIn(id Group) {
	if !slices.Contains(e.outside, id) {
		e.outside = append(e.outside, id)
	}
}

// leave keeps a notification in the window until a write is done.
func (l *Line) leave(r *Row, w *webhook) {
	r.state, r.of = leaving, w
	w.leaving++
	l.leaving++
}
