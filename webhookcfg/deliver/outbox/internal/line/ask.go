package line

import (
	"slices"
	"time"
)

const (
	// pageSort is how many notifications are read at a time to be sorted.
	pageSort = 384
	// maxParts is how many groups or entities a question asks for, besides those that are unsorted.
	maxParts = 16
)

// Question is what to read from the tables: a page of the groups that they have, or notifications.
type Question struct {
	// IsListing asks for the groups after one.
	IsListing bool
	After     Group

	// Parts are the notifications to read.
	Parts []Part
	// Without are entities to leave out of groups, and Held the numbers of notifications to leave out
	// of all parts.
	Without []string
	Held    []int64
}

// Part asks for notifications in the order in which they're due.
type Part struct {
	// Group is whose notifications to read. If All is set, those that aren't due, too.
	Group Group
	All   bool
	// Entity asks for those of an entity instead, in all groups but this one and its sibling.
	Entity string
	// Limit is how many to read.
	Limit int

	entity string // whose group it is, if it's an override's
}

// Answer is what was found.
type Answer struct {
	// Groups are those of a listing. IsMore says that there are others.
	Groups []Listed
	IsMore bool

	// Parts are what was found for each part.
	Parts []Found

	// Hooks are the webhooks of the entities of what was found. One is missing if it couldn't be
	// looked up.
	Hooks map[string]Hook
}

// Listed is a group of a listing.
type Listed struct {
	// Group is its number.
	Group Group
	// Entity is that of its first notification, and Wait the time until that is due.
	Entity string
	Wait   time.Duration
}

// Found is what was found for a part.
type Found struct {
	// Rows are the notifications.
	Rows []Row
	// Next is how long it takes until the first notification of the group is due that isn't yet. Zero
	// means that there's none, and the answer to a part for All or for an entity has none.
	Next time.Duration
}

// ask says that a webhook perhaps has something to ask for.
func (l *Line) ask(w *webhook) {
	if !w.isAsking {
		w.isAsking = true
		l.asks = append(l.asks, w)
	}
}

// tick reacts to what has happened with time.
func (l *Line) tick(now time.Time) {
	if !l.rest.After(now) {
		l.rest = time.Time{}
	}
	for _, w := range l.alarm.due(now) {
		w.alarm = time.Time{}
		l.ask(w)
	}
	if l.alarm.next = (time.Time{}); len(l.rests) > 0 {
		l.wake(now)
		for _, e := range l.rests {
			l.alarm.next = earliest(l.alarm.next, e.rest)
		}
	}
}

// Ask returns what to read next, or nil. There's one question at a time, and the caller passes
// what becomes of it to Answer or Failed.
func (l *Line) Ask(now time.Time) *Question {
	l.tick(now)
	if l.asked != nil || l.rest.After(now) || l.leaving > maxLeaving {
		return nil
	}
	if l.listing {
		l.asked = &Question{IsListing: true, After: l.listed}
		return l.asked
	}
	q := &Question{}
	planned := make(map[*host]int)
	for n := len(l.asks); n > 0 && len(q.Parts) < maxParts; n-- {
		w := l.asks[0]
		l.asks = slices.Delete(l.asks, 0, 1)
		w.isAsking = false
		l.askFor(q, w, planned, now)
	}
	// Last, so that what has come before to the same webhook is in the window by then.
	for _, id := range []Group{Fresh, Again} {
		l.askUnsorted(q, id, now)
	}
	if len(q.Parts) == 0 {
		return nil
	}
	l.leaveOut(q)
	l.asked = q
	return q
}

// askUnsorted asks for a group of notifications that nobody has looked up. If all go to the base,
// they wait there until it has room.
func (l *Line) askUnsorted(q *Question, id Group, now time.Time) {
	g, limit := l.groups[id], pageSort
	if g == nil || !g.isDue(now) {
		if g != nil && !g.next.IsZero() {
			l.alarmFor(l.base, g.next)
		}
		return
	}
	if l.alone {
		if !l.takes(l.base, id.IsTried(), now) || !id.IsTried() && l.base.hasOutside() {
			return
		}
		limit = l.room(l.base, id.IsTried())
	}
	l.add(q, Part{Group: id, Limit: limit}, g, now)
}

// askFor asks for what waits for a webhook, if it can take some.
func (l *Line) askFor(q *Question, w *webhook, planned map[*host]int, now time.Time) {
	var next time.Time
	before := len(q.Parts)
	isFull := func() bool { return len(q.Parts) == maxParts || w.isFailing() && len(q.Parts) > before }
	for _, g := range slices.Clone(w.groups) {
		if !g.isDue(now) {
			next = earliest(next, g.next)
			continue
		}
		if !l.takes(w, g.id.IsTried(), now) {
			return
		}
		limit := l.room(w, g.id.IsTried())
		if w.isOverride {
			limit = min(limit, roomHost*l.limits.PerHost-w.host.held-planned[w.host])
		}
		if limit <= 0 || isFull() {
			l.ask(w)
			return
		}
		planned[w.host] += limit
		l.add(q, Part{Group: g.id, All: g.isAll(), Limit: limit}, g, now)
	}
	if !next.IsZero() {
		l.alarmFor(w, next)
	}
	l.askToGather(q, w, isFull, now)
}

// askToGather asks for what waits for entities of a webhook in groups of others.
func (l *Line) askToGather(q *Question, w *webhook, isFull func() bool, now time.Time) {
	var later []string
	for i, name := range w.gathering {
		if !l.takes(w, false, now) {
			later = append(later, w.gathering[i:]...)
			break
		}
		if isFull() {
			later = append(later, w.gathering[i:]...)
			l.ask(w)
			break
		}
		free := roomEntity
		if e := l.entities[name]; e != nil {
			if free -= len(e.rows); free < roomEntity/2 {
				l.crowd(e)
			}
			if e.isOut() {
				later = append(later, name)
				continue
			}
		}
		q.Parts = append(q.Parts, Part{Entity: name, Group: groupOf(w.setting, w.isOverride, false), Limit: min(l.room(w, false), free)})
	}
	w.gathering = later
}

// add adds a part that asks for a group. What comes to the group from here on is news. What's expected later
// still is: answers take time, so it may be due already, and behind a full page.
func (l *Line) add(q *Question, p Part, g *group, now time.Time) {
	p.entity = g.entity
	q.Parts = append(q.Parts, p)
	g.more = false
	if isNextDue := !g.next.IsZero() && !g.next.After(now); isNextDue {
		g.next = time.Time{}
		g.open()
	}
}

// takes reports whether a webhook can take notifications into the window: it isn't paused, and much
// of its room is free. Otherwise, what ends that asks again.
func (l *Line) takes(w *webhook, isTried bool, now time.Time) bool {
	if w.isPaused(now) {
		l.alarmFor(w, w.opens())
		return false
	}
	need := 1
	switch {
	case w.isFailing():
	case w.isOverride:
		need = roomOverride / 2
		if roomHost*l.limits.PerHost-w.host.held < need && !slices.Contains(w.host.waiting, w) {
			w.host.waiting = append(w.host.waiting, w)
		}
		if roomOverrides-l.held < need && !slices.Contains(l.waiting, w) {
			l.waiting = append(l.waiting, w)
		}
	case isTried:
		need = roomBaseTried / 2
	default:
		need = roomBase / 2
	}
	return l.room(w, isTried) >= need
}

func (l *Line) alarmFor(w *webhook, at time.Time) {
	if w.alarm.IsZero() || at.Before(w.alarm) {
		w.alarm = at
		l.alarm.setFor(w, at)
	}
}

// leaveOut leaves out of a question what's in the window, and entities that have their share of it
// or that rest.
func (l *Line) leaveOut(q *Question) {
	groups, entities := make(map[Group]bool), make(map[string]bool)
	for _, p := range q.Parts {
		if p.Entity == "" {
			groups[p.Group] = true
		} else {
			entities[p.Entity] = true
		}
	}
	for seq, r := range l.rows {
		if groups[r.Group] || entities[r.Entity] {
			q.Held = append(q.Held, seq)
		}
	}
	for _, e := range l.rests {
		q.Without = append(q.Without, e.name)
		for id := range groups {
			if !id.isOverride() || l.groups[id].entity == e.name {
				e.leftIn(id)
			}
		}
	}
}

// Failed says that a question couldn't be answered. It's asked again after a while.
func (l *Line) Failed(q *Question, now time.Time) {
	l.asked = nil
	for _, p := range q.Parts {
		l.again(p)
		if g := l.groups[p.Group]; g != nil {
			g.open() // others may be due by now
		}
	}
	l.pauseAll(now)
}

// again says that a part has to be asked again.
func (l *Line) again(p Part) {
	if p.Entity != "" {
		w := l.current(p.Entity)
		w.take(p.Entity)
		l.ask(w)
		return
	}
	l.askMore(l.known(p.Group, p.entity))
}

// current returns the webhook of an entity, as far as we know.
func (l *Line) current(entity string) *webhook {
	if w := l.overrides[entity]; w != nil {
		return w
	}
	return l.base
}
