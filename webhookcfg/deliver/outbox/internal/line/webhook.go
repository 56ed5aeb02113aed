package line

import (
	"slices"
	"time"

	"example.com/go-webhookcfg/webhookcfg/deliver/internal/pause"
)

// Hook is a webhook as the caller found it.
type Hook struct {
	Override bool   // the entity has its own; otherwise it's the base
	Setting  int64  // identifies it as it was set; more than zero
	Host     string // where it leads; "" if nothing may be called
	Target   uint64 // tells its URL from others
}

// webhook is the base of a client or one of its overrides, as it's set now. It's what fails and
// pauses.
type webhook struct {
	entity     string // that it's the override of
	isOverride bool
	setting    int64 // zero: not known yet
	target     uint64
	host       *host
	pause      pause.State

	held, heldTried, underWay int       // notifications in the window, and those of them under way
	fresh, tried              []*entity // that are ready: the first of their notifications was never tried, or was
	inTurn                    bool

	groups    []*group  // that aren't all in the window
	gathering []string  // entities with notifications in groups of other webhooks
	leaving   int       // notifications of it that are in the window until a write is done
	moving    int       // of them, those that were never tried and move to a group of it
	isAsking  bool      // it's in Line.asks
	alarm     time.Time // when it's put there; zero: it isn't known

	hasWorked bool   // the last attempt succeeded
	reason    string // why it failed
	isUnsaved bool
	restored  *pause.State // of its host, if where it leads isn't known yet
}

// webhookOf returns the webhook of an entity, and takes in what was found. The entity is "" for
// the base itself.
func (l *Line) webhookOf(entity string, h Hook, now time.Time) *webhook {
	w := l.base
	switch was := l.overrides[entity]; {
	case h.Override && was == nil:
		w = &webhook{entity: entity, isOverride: true}
		l.overrides[entity] = w
		l.alone = false
	case h.Override:
		w = was
	case was != nil && entity != "":
		l.end(was, now)
	}
	switch {
	case w.restored != nil && w.setting == h.Setting:
		l.adopt(w, h)
	case w.setting != h.Setting || w.host == nil:
		l.set(w, h, now)
	case w.host.name != h.Host: // it was stopped, say, or goes on
		l.lead(w, h.Host)
		w.target = h.Target
	}
	if e := l.entities[entity]; e != nil && entity != "" {
		l.move(e, w)
	}
	return w
}

// set takes in a setting. What waits for the former one may go at once.
func (l *Line) set(w *webhook, h Hook, now time.Time) {
	isSame := w.setting != 0 && w.restored == nil && w.host.name == h.Host && w.target == h.Target
	l.lead(w, h.Host)
	if isSame {
		w.pause.Trial(now)
	} else {
		w.pause, w.reason, w.hasWorked = pause.State{}, "", false
	}
	w.host.pause.Trial(now)
	if w.setting != 0 {
		l.changed(w)
	}
	w.restored = nil
	w.setting, w.target = h.Setting, h.Target
	for _, g := range w.groups {
		g.reset()
	}
	l.ask(w)
}

// lead makes a webhook lead to a host.
func (l *Line) lead(w *webhook, name string) {
	was := w.host
	if was != nil && was.name == name {
		return
	}
	w.host = l.host(name)
	w.host.webhooks++
	if was != nil {
		l.rehost(w, was)
		l.unhost(was)
	}
}

// rehost moves what waits in the window for a webhook to another host.
func (l *Line) rehost(w *webhook, was *host) {
	if w.isOverride {
		was.held -= w.held
		w.host.held += w.held
		was.waiting = remove(was.waiting, w)
		l.makeRoom(was)
	}
	was.fresh -= len(w.fresh)
	w.host.fresh += len(w.fresh)
}

// end ends an override that's no longer set. Its entity has the base.
func (l *Line) end(w *webhook, now time.Time) {
	for _, g := range w.groups {
		g.of = l.base
		g.reset()
	}
	l.base.groups = append(l.base.groups, w.groups...)
	l.base.gathering = append(l.base.gathering, w.gathering...)
	w.groups, w.gathering = nil, nil
	if e := l.entities[w.entity]; e != nil {
		l.move(e, l.base)
	}
	l.forget(w)
	l.ask(l.base)
}

// forget forgets an override.
func (l *Line) forget(w *webhook) {
	delete(l.overrides, w.entity)
	l.unhost(w.host)
	w.host.waiting, l.waiting = remove(w.host.waiting, w), remove(l.waiting, w)
}

// settle forgets an override that has nothing, unless there's room to remember that it works.
func (l *Line) settle(w *webhook, now time.Time) {
	if w.isOverride && (!w.works() || len(l.overrides) > maxKnown) && l.overrides[w.entity] == w && w.held+w.leaving+len(w.groups)+len(w.gathering) == 0 &&
		!w.pause.IsUnwell(now) && !w.isUnsaved && l.asked == nil {
		l.forget(w)
	}
}

// take says that notifications of an entity are in groups of other webhooks.
func (w *webhook) take(entity string) {
	if !slices.Contains(w.gathering, entity) {
		w.gathering = append(w.gathering, entity)
	}
}

// opens returns when an attempt may be made: not before the end of the webhook's pause, and of its
// host's.
func (w *webhook) opens() time.Time {
	if end := w.host.pause.End(); end.After(w.pause.End()) {
		return end
	}
	return w.pause.End()
}

func (w *webhook) isPaused(now time.Time) bool { return w.opens().After(now) }

func (w *webhook) isFailing() bool { return w.pause.IsFailing() || w.host.pause.IsFailing() }

// works reports whether the last attempt succeeded, and nobody has failed to connect since.
func (w *webhook) works() bool { return w.hasWorked && w.host.pause.Failures == 0 }

// room returns how many more of its notifications the window can have.
func (l *Line) room(w *webhook, isTried bool) int {
	switch {
	case w.isFailing():
		return 1 - w.held
	case w.isOverride:
		return min(roomOverride-w.held, roomHost*l.limits.PerHost-w.host.held, roomOverrides-l.held)
	case isTried:
		return roomBaseTried - w.heldTried
	default:
		return roomBase - (w.held - w.heldTried)
	}
}

// hasOutside reports whether notifications that were never tried wait for the webhook outside of
// the window, in its groups.
func (w *webhook) hasOutside() bool {
	return w.moving > 0 || slices.ContainsFunc(w.groups, func(g *group) bool { return g.more && !g.id.IsTried() })
}

// known returns what the line knows about a group. If it's an override's, the entity says whose.
func (l *Line) known(id Group, entity string) *group {
	w := l.base // of other groups, whatever webhook some of their entities have now
	if id.isOverride() {
		w = l.current(entity)
	}
	g := l.groups[id]
	switch {
	case g == nil:
		g = &group{id: id, entity: entity}
		l.groups[id] = g
	case g.of == nil || g.of == w:
		return g
	default: // the override has come back
		g.of.groups = remove(g.of.groups, g)
		g.reset()
	}
	if !id.isUnsorted() {
		g.of = w
		w.groups = append(w.groups, g)
	}
	return g
}

// owns reports whether a group is one of a webhook as it's set now.
func (w *webhook) owns(id Group) bool { return id == groupOf(w.setting, w.isOverride, id.IsTried()) }

// mark says that a group may have notifications that may go now, and aren't in the window.
func (l *Line) mark(id Group, entity string) {
	g := l.known(id, entity)
	g.open()
	l.askMore(g)
}

// askMore asks a group for more of what's known to be in it.
func (l *Line) askMore(g *group) {
	g.more = true
	if g.of != nil {
		l.ask(g.of)
	}
}

// expect says that a group has a notification that may go at a time.
func (l *Line) expect(id Group, entity string, at time.Time) {
	g := l.known(id, entity)
	g.next = earliest(g.next, at)
	if g.of != nil {
		l.ask(g.of)
	} else {
		l.alarmFor(l.base, at)
	}
}

// drain forgets a group that has nothing outside of the window, as far as we know.
func (l *Line) drain(g *group) {
	isLeft := slices.ContainsFunc(l.rests, func(e *entity) bool { return slices.Contains(e.outside, g.id) })
	if g.of != nil && !g.more && g.next.IsZero() && !isLeft {
		delete(l.groups, g.id)
		g.of.groups = remove(g.of.groups, g)
	}
}

func remove[T comparable](all []T, one T) []T {
	if i := slices.Index(all, one); i >= 0 {
		return slices.Delete(all, i, i+1)
	}
	return all
}

// Ungathered returns the entities for which notifications may wait in groups in which they waited before
// their webhook changed. Whoever has the line next has to know of the change. Of all is "".
func (l *Line) Ungathered() map[string]bool {
	all := make(map[string]bool)
	for _, k := range l.looks {
		all[k.entity] = true
	}
	for _, w := range l.overrides {
		for _, entity := range w.gathering {
			all[entity] = true
		}
	}
	for _, entity := range l.base.gathering {
		all[entity] = true
	}
	if l.asked != nil {
		for _, p := range l.asked.Parts {
			if p.Entity != "" {
				all[p.Entity] = true
			}
		}
	}
	for _, r := range l.rows {
		if id := r.stays(); !id.isUnsorted() && !l.current(r.Entity).owns(id) {
			all[r.Entity] = true
		}
	}
	return all
}
