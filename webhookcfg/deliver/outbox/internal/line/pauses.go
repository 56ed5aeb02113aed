package line

import (
	"slices"
	"strings"
	"time"

	"example.com/go-webhookcfg/webhookcfg/deliver/internal/pause"
)

// Pause is what to remember of a webhook that fails, for whoever has the line next, and for
// people.
type Pause struct {
	Entity   string // of an override; "" is the base
	Override bool
	Setting  int64
	Reason   string // why the last attempt failed
	// Webhook is what its attempts say, and Host what those say that connected, or couldn't, to where
	// it leads.
	Webhook, Host pause.State
}

// IsOver reports whether there's nothing to remember.
func (p Pause) IsOver(now time.Time) bool {
	return !p.Webhook.IsUnwell(now) && !p.Host.IsUnwell(now)
}

// Unsaved returns the pauses that have changed since the last call.
func (l *Line) Unsaved() (all []Pause) {
	for _, w := range l.unsaved {
		w.isUnsaved = false
		all = append(all, Pause{w.entity, w.isOverride, w.setting, w.reason, w.pause, w.host.pause})
	}
	l.unsaved = nil
	slices.SortFunc(all, func(a, b Pause) int { return strings.Compare(a.Entity, b.Entity) })
	return all
}

// changed says that the pause of a webhook has to be saved.
func (l *Line) changed(w *webhook) {
	if !w.isUnsaved {
		w.isUnsaved = true
		l.unsaved = append(l.unsaved, w)
	}
}

// Restore takes in a pause, before anything else.
func (l *Line) Restore(p Pause) {
	w := l.base
	if p.Override {
		w = &webhook{entity: p.Entity, isOverride: true}
		l.overrides[p.Entity] = w
		l.lead(w, "")
	}
	w.setting, w.pause, w.reason, w.restored = p.Setting, p.Webhook, p.Reason, &p.Host
}

// adopt takes in where a restored webhook leads.
func (l *Line) adopt(w *webhook, h Hook) {
	l.lead(w, h.Host)
	w.target = h.Target
	if w.host.pause == (pause.State{}) {
		w.host.pause = *w.restored
	}
	w.restored = nil
}
