package line

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// Effect is what an attempt says about its receiver.
type Effect uint8

const (
	// NoEffect: nothing, since it wasn't made or our side has failed.
	NoEffect Effect = iota
	// Success: the receiver accepted the notification.
	Success
	// Failure: the receiver didn't accept it.
	Failure
	// NoConnection: nobody could connect to the host.
	NoConnection
)

// Result is what became of an attempt.
type Result struct {
	// Effect is what it says about the receiver.
	Effect Effect
	// Start is when it started.
	Start time.Time
	// Reason is why the attempt failed.
	Reason string
	// Pause is the pause that the receiver asked for.
	Pause time.Duration
	// IsOurs says that our side has failed, so that it doesn't count.
	IsOurs bool
	// HasEnded says that there's no further attempt. Otherwise it's made after Delay.
	HasEnded bool
	Delay    time.Duration
}

// End takes in what became of an attempt. The first of the writes is about its notification.
func (l *Line) End(r *Row, result Result, now time.Time) (writes []Write) {
	e, w, h := l.entities[r.Entity], r.of, r.host
	l.release(r)
	l.count(r, -1)
	e.rows = remove(e.rows, r)
	e.isRunning = false
	l.leave(r, e.of)
	write := Write{Row: r, HasEnded: result.HasEnded, Group: groupOf(e.of.setting, e.of.isOverride, true), Delay: result.Delay}
	switch {
	case result.IsOurs:
		write.Delay = l.fails(e, r, now)
	case e.of != w || e.of.setting != r.setting:
		write.Delay = 0 // the webhook was set meanwhile
		l.works(e, now)
	default:
		l.works(e, now)
	}
	if !write.HasEnded {
		r.to = write.Group
	}
	writes = append(writes, write)
	if e.rest.Sub(now) > keepFor {
		writes = append(writes, l.unloadEntity(e)...)
	}
	wasPaused := w.isPaused(now)
	l.judge(w, h, r.setting == w.setting, result, now)
	l.ready(e)
	if w.isPaused(now) && !wasPaused {
		writes = append(writes, l.unloadAll(w, h, now)...)
	}
	l.settleEntity(e)
	l.settle(w, now)
	return writes
}

// judge records what an attempt says about its webhook and its host.
func (l *Line) judge(w *webhook, h *host, isCurrent bool, result Result, now time.Time) {
	wasUnwell := h.pause.IsUnwell(now)
	switch result.Effect {
	case NoConnection:
		h.pause.Fail(result.Start, now, l.limits.MaxPause)
	case Success, Failure:
		h.pause.Succeed()
	}
	if wasUnwell && !h.pause.IsUnwell(now) {
		for _, other := range l.at(h) {
			l.ask(other)
		}
	}
	if !isCurrent {
		return
	}
	was, reason := w.pause, w.reason
	switch result.Effect {
	case Success:
		w.pause.Succeed()
		w.hasWorked, w.reason = true, ""
	case Failure:
		w.pause.Fail(result.Start, now, l.limits.MaxPause)
		w.hasWorked, w.reason = false, result.Reason
	case NoConnection:
		w.hasWorked, w.reason = false, result.Reason
	}
	if result.Pause > 0 {
		w.pause.Ask(now.Add(result.Pause))
	}
	if w.pause != was || w.reason != reason || result.Effect == NoConnection {
		l.changed(w)
	}
}

// at returns the webhooks that lead to a host.
func (l *Line) at(h *host) (all []*webhook) {
	if l.base.host == h {
		all = append(all, l.base)
	}
	for _, entity := range slices.Sorted(maps.Keys(l.overrides)) {
		if w := l.overrides[entity]; w.host == h {
			all = append(all, w)
		}
	}
	return all
}

// keepFor is the longest pause for which a paused webhook keeps what it has in the window, and the
// longest rest for which an entity does.
const keepFor = time.Second

// unloadAll unloads a webhook that was paused, or all of a host that was.
func (l *Line) unloadAll(w *webhook, h *host, now time.Time) (writes []Write) {
	if !h.pause.End().After(now) {
		return l.unload(w, now)
	}
	for _, other := range l.at(h) {
		writes = append(writes, l.unload(other, now)...)
	}
	return writes
}

// unload takes what waits for a paused webhook out of the window, for the others.
func (l *Line) unload(w *webhook, now time.Time) (writes []Write) {
	if w.opens().Sub(now) <= keepFor {
		return nil
	}
	var queue []*Row
	for _, r := range l.rows {
		if r.of == w && r.state == queued {
			queue = append(queue, r)
		}
	}
	slices.SortFunc(queue, func(a, b *Row) int { return cmp.Compare(a.Seq, b.Seq) })
	for _, r := range queue {
		e := l.entities[r.Entity]
		writes = append(writes, l.takeOut(e, r)...)
		l.settleEntity(e)
	}
	return writes
}

// unloadEntity takes what waits for an entity that rests out of the window.
func (l *Line) unloadEntity(e *entity) (writes []Write) {
	for _, r := range slices.Clone(e.rows) {
		if r.state == queued {
			writes = append(writes, l.takeOut(e, r)...)
			e.leftIn(r.stays())
		}
	}
	return writes
}

// takeOut takes a notification out of the window. The write is about where it's found again, unless it
// stays where it is.
func (l *Line) takeOut(e *entity, r *Row) []Write {
	l.unready(e)
	e.rows = remove(e.rows, r)
	l.count(r, -1)
	if write := l.putOff(e.of, r); write != nil {
		return []Write{*write}
	}
	return nil
}

// Written says that writes are in the tables.
func (l *Line) Written(writes []Write, now time.Time) {
	for _, write := range writes {
		r := write.Row
		delete(l.rows, r.Seq)
		l.leaving--
		r.of.leaving--
		if r.isMoving {
			r.of.moving--
		}
		w := l.current(r.Entity)
		switch {
		case write.HasEnded:
		case !write.Group.isUnsorted() && !w.owns(write.Group):
			l.mark(write.Group, r.Entity)
			w.take(r.Entity) // its webhook has changed meanwhile
			l.ask(w)
		case write.Delay > 0:
			l.expect(write.Group, r.Entity, now.Add(write.Delay))
		default:
			l.mark(write.Group, r.Entity)
		}
		if r.isResent {
			l.mark(Again, "")
		}
		l.settle(r.of, now)
	}
}
