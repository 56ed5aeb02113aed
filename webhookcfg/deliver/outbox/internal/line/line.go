package line

import (
	"math/rand/v2"
	"slices"
	"time"
)

// Limits are those of a client.
type Limits struct {
	PerClient, PerHost int           // attempts under way
	MaxPause           time.Duration // the longest pause
}

// What a line keeps in its window.
const (
	roomBase      = 256  // of the base, never tried; more than its slots need while the next ones are read
	roomBaseTried = 128  // of the base, tried
	roomOverride  = 8    // of an override; less than roomHost would leave slots empty
	roomEntity    = 16   // of an entity
	roomHost      = 8    // of all overrides on a host, for each slot
	roomOverrides = 1024 // of all overrides
	maxKnown      = 1024 // overrides, beyond those that have something in the window or outside
	maxLeaving    = 512  // not written yet; beyond that, nothing is read
)

// Line decides what a client's notifications do next. Create it with [New].
type Line struct {
	limits Limits
	random *rand.Rand

	rows      map[int64]*Row // the window
	leaving   int            // of them
	entities  map[string]*entity
	base      *webhook
	overrides map[string]*webhook
	held      int        // notifications of overrides in the window
	waiting   []*webhook // for room for them
	hosts     map[string]*host
	groups    map[Group]*group

	alone bool       // all of the client's notifications go to its base
	turns []*webhook // overrides with notifications that are ready
	asks  []*webhook // that perhaps have something to ask for
	alarm alarm      // when others have

	wasBase bool // the last one started was the base's

	unsaved []*webhook // whose pauses have changed

	underWay, unproven int // attempts, and those at webhooks that didn't work the last time

	asked    *Question
	listing  bool // the groups in the tables have to be listed
	listed   Group
	looks    []look
	nextLook time.Time        // not later than the first of them; zero if there's none
	gathered map[string]Group // for entities that will be looked up again, what was found
	trials   map[string]bool  // entities whose webhook is put on trial if it's the same
	rests    []*entity        // after failures on our side, or crowded
	maxRests int              // how many may be
	rest     time.Time        // nothing is asked for or started before
	failures int              // on our side, in a row
	worked   time.Time        // when our side last worked
}

// New returns a line that knows nothing about its client yet, and asks for everything. It takes from
// random how long it rests.
func New(limits Limits, random *rand.Rand) *Line {
	l := &Line{
		random: random,
		rows:   make(map[int64]*Row), entities: make(map[string]*entity),
		overrides: make(map[string]*webhook), hosts: make(map[string]*host), groups: make(map[Group]*group),
		gathered: make(map[string]Group), trials: make(map[string]bool), listing: true, maxRests: maxRests,
	}
	l.SetLimits(limits)
	l.base = &webhook{}
	l.lead(l.base, "")
	l.mark(Fresh, "")
	l.mark(Again, "")
	l.look("", time.Unix(0, 0))
	return l
}

// SetLimits changes the limits.
func (l *Line) SetLimits(limits Limits) {
	l.limits = Limits{PerClient: max(limits.PerClient, 1), PerHost: max(limits.PerHost, 1), MaxPause: limits.MaxPause}
}

// News says that notifications were enqueued.
func (l *Line) News() { l.mark(Fresh, "") }

// Resent says that notifications were sent again, perhaps.
func (l *Line) Resent() {
	l.mark(Again, "")
	for _, r := range l.rows {
		r.isResent = true
	}
}

// Changed says that the webhook of an entity, or all if that's "", was set or unset, or perhaps
// works again. The caller may see the new webhook only a while later, so it's looked up several times. One
// that's still the same gets an attempt at once, at most once a minute.
func (l *Line) Changed(entity string, now time.Time) {
	l.trials[entity] = true
	for _, after := range lookAfter {
		l.look(entity, now.Add(after))
	}
	if entity == "" {
		l.listing, l.listed = true, 0
	}
}

// lookAfter is when a webhook that has changed is looked up. The last time is later than the
// caller's view of the webhooks may lag.
var lookAfter = []time.Duration{0, time.Second, 3 * time.Second, 7 * time.Second, 16 * time.Second}

// look is a webhook that the caller should look up at a time.
type look struct {
	entity string // "" for the base
	at     time.Time
}

// Looks returns the entities whose webhooks the caller should look up now, "" for the base. It
// passes what it finds to [Line.Looked].
func (l *Line) Looks(now time.Time) (entities []string) {
	if l.nextLook.IsZero() || l.nextLook.After(now) {
		return nil
	}
	later := l.looks[:0]
	l.nextLook = time.Time{}
	seen := make(map[string]bool)
	for _, k := range l.looks {
		switch {
		case k.at.After(now):
			later = append(later, k)
			l.nextLook = earliest(l.nextLook, k.at)
		case !seen[k.entity]:
			seen[k.entity] = true
			entities = append(entities, k.entity)
		}
	}
	l.looks = later
	return entities
}

// Looked takes in the webhook of an entity that has changed, or the base.
func (l *Line) Looked(entity string, h Hook, now time.Time) {
	if entity == "" {
		h.Override = false
	}
	isTrial := l.trials[entity]
	delete(l.trials, entity)
	was := l.current(entity).setting
	w := l.webhookOf(entity, h, now)
	if isTrial && w.setting == was {
		l.try(w, now)
	}
	if entity == "" {
		return
	}
	if found := groupOf(w.setting, w.isOverride, false); l.gathered[entity] != found {
		l.gathered[entity] = found
		w.take(entity)
		l.ask(w)
		if w.isOverride {
			l.mark(found, entity)
			l.mark(found|triedBit, entity)
		}
	}
	if !l.willLook(entity) {
		delete(l.gathered, entity)
	}
}

// try lets a webhook have an attempt before its pause is over.
func (l *Line) try(w *webhook, now time.Time) {
	w.pause.Trial(now)
	w.host.pause.Trial(now)
	l.changed(w)
	l.ask(w)
}

// LookFailed says that a webhook couldn't be looked up.
func (l *Line) LookFailed(entity string, now time.Time) {
	l.look(entity, now.Add(l.jitter(maxRest)))
}

// look makes the caller look up a webhook at a time.
func (l *Line) look(entity string, at time.Time) {
	l.looks = append(l.looks, look{entity, at})
	l.nextLook = earliest(l.nextLook, at)
}

func (l *Line) willLook(entity string) bool {
	return slices.ContainsFunc(l.looks, func(k look) bool { return k.entity == entity })
}

// SetAlone says whether the client has no overrides, so that nothing needs to be sorted.
func (l *Line) SetAlone(isAlone bool) {
	l.alone = isAlone && len(l.overrides) == 0
}

// IsAlone reports whether all of the client's notifications go to its base.
func (l *Line) IsAlone() bool { return l.alone }

// earliest returns the earlier of two times, of which zero is never.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
