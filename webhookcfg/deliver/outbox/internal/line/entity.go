package line

import (
	"slices"
	"time"
)

// entity is an entity with notifications in the window. They go one after another.
type entity struct {
	name      string
	of        *webhook
	rows      []*Row // queued or started, in order
	isRunning bool   // the first one is started
	isReady   bool   // it's in its webhook's list

	isCrowded bool          // it has as many in the window as it may
	rest      time.Time     // nothing of it starts before: our side has failed
	delay     time.Duration // how long it rested the last time; zero after a success
	outside   []Group       // with its notifications, left out of questions while it's crowded or rests
}

const (
	// After a failure on our side, for example of the keys, an entity rests for firstRest, and then for
	// twice as long after each further failure.
	firstRest = time.Second
	maxRest   = 30 * time.Second
	// After maxFailures in a row, and nothing has worked for restAll, all entities rest for about that
	// long.
	maxFailures = 8
	restAll     = time.Second
	// maxRests is how many entities rest at a time, so that questions leave out no more, besides those that
	// have their share of the window.
	maxRests = 64
)

func (l *Line) entity(name string, w *webhook) *entity {
	e := l.entities[name]
	if e == nil {
		e = &entity{name: name, of: w}
		l.entities[name] = e
	}
	return e
}

// move moves an entity to another webhook. What's under way stays with the former one.
func (l *Line) move(e *entity, w *webhook) {
	was := e.of
	if was == w {
		return
	}
	l.unready(e)
	e.of = w
	for _, r := range e.rows {
		if r.state == queued {
			l.count(r, -1)
			r.of = w
			l.count(r, 1)
		}
	}
	l.ready(e)
}

// count counts a notification as one of its webhook in the window, or no more.
func (l *Line) count(r *Row, n int) {
	w := r.of
	w.held += n
	if r.isTried {
		w.heldTried += n
	}
	if w.isOverride {
		w.host.held += n
		l.held += n
	}
	if n < 0 {
		l.ask(w)
		l.makeRoom(w.host)
	}
}

// ready puts an entity among those of its webhook that could start, if it's one.
func (l *Line) ready(e *entity) {
	if e.isReady || e.isRunning || len(e.rows) == 0 || !e.rest.IsZero() {
		return
	}
	e.isReady = true
	w := e.of
	if e.rows[0].isTried {
		w.tried = append(w.tried, e)
	} else {
		w.fresh = append(w.fresh, e)
		w.host.fresh++
	}
	l.turn(w)
}

func (l *Line) unready(e *entity) {
	if !e.isReady {
		return
	}
	e.isReady = false
	w := e.of
	if i := slices.Index(w.fresh, e); i >= 0 {
		w.fresh = slices.Delete(w.fresh, i, i+1)
		w.host.fresh--
	} else {
		w.tried = remove(w.tried, e)
	}
}

// turn gives an override its turn to start something.
func (l *Line) turn(w *webhook) {
	if w.isOverride && !w.inTurn && len(w.fresh)+len(w.tried) > 0 {
		w.inTurn = true
		l.turns = append(l.turns, w)
	}
}

// crowd leaves an entity out of questions until half of its room is free.
func (l *Line) crowd(e *entity) {
	if !e.isOut() {
		l.rests = append(l.rests, e)
	}
	e.isCrowded = true
}

// isOut reports whether an entity is left out of questions.
func (e *entity) isOut() bool { return e.isCrowded || !e.rest.IsZero() }

// fails makes an entity rest after a failure on our side, and returns for how long. If too many rest, just
// its notification should, and the longer the longer it has waited. Others go on, unless all fail.
func (l *Line) fails(e *entity, r *Row, now time.Time) time.Duration {
	took := l.jitter(min(max(r.Waited, firstRest), maxRest))
	if e.isOut() || len(l.rests) < l.maxRests {
		if !e.isOut() {
			l.rests = append(l.rests, e)
		}
		l.unready(e)
		e.delay = min(max(2*e.delay, firstRest), maxRest)
		took = l.jitter(e.delay)
		e.rest = now.Add(took)
		l.alarm.set(e.rest)
	}
	l.failures++
	if l.failures >= maxFailures && now.Sub(l.worked) > restAll {
		l.failures = 0
		l.pauseAll(now)
	}
	return took
}

// pauseAll makes the line ask for and start nothing for a while.
func (l *Line) pauseAll(now time.Time) {
	l.rest = now.Add(l.jitter(restAll))
}

// works says that our side works for an entity.
func (l *Line) works(e *entity, now time.Time) {
	e.delay = 0
	l.failures, l.worked = 0, now
}

// wake lets entities go on that have rested, or have room again.
func (l *Line) wake(now time.Time) {
	out := l.rests[:0]
	for _, e := range l.rests {
		if !e.rest.IsZero() && !e.rest.After(now) {
			e.rest = time.Time{}
			l.ready(e)
		}
		if e.isCrowded && len(e.rows) <= roomEntity/2 {
			e.isCrowded = false
		}
		if e.isOut() {
			out = append(out, e)
			continue
		}
		for _, id := range e.outside {
			g := l.known(id, e.name)
			g.back = append(g.back, e)
			l.askMore(g)
		}
		e.outside = nil
		l.ask(e.of)
		l.settleEntity(e)
	}
	clear(l.rests[len(out):])
	l.rests = out
}

func (l *Line) settleEntity(e *entity) {
	if len(e.rows) == 0 && !e.isOut() && e.delay == 0 {
		delete(l.entities, e.name)
	}
}

// jitter returns a random duration from d/2 to 3d/2.
func (l *Line) jitter(d time.Duration) time.Duration {
	return d/2 + time.Duration(l.random.Int64N(int64(d)))
}
