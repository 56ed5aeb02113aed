package deliver

import (
	"hash/maphash"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
)

// isSame reports whether a webhook has the URL of the record. One without a Since has no record that
// could stop it.
func (rec *healthRecord) isSame(hook webhookcfg.Webhook, seed maphash.Seed) bool {
	return rec.target == targetOf(hook, seed) && !hook.Since.IsZero()
}

// follow takes over what's known about the webhook as it was set before. If that's the same URL, it's all
// that's known, and a stopped webhook is put on trial, unless it is already.
func (rec *healthRecord) follow(was *healthRecord, now time.Time) {
	rec.shown, rec.changesFull = was.shown, was.changesFull
	if rec.target != was.target || rec.Since.IsZero() {
		return
	}
	since := rec.Since
	rec.Record, rec.trial = was.Record, was.trial
	rec.Since = since
	if rec.Stopped && (!rec.trial.OnTrial || was.isTried) {
		rec.trial.Until = now.Add(forever)
		rec.trial.Trial(now)
	}
}

// forever is how long a stop lasts.
const forever = 100 * 365 * 24 * time.Hour

// isOnTrial reports whether there may be an attempt although the webhook was stopped.
func (rec *healthRecord) isOnTrial(now time.Time) bool {
	return rec.trial.OnTrial && !rec.trial.End().After(now)
}

// endTrial takes in the end of an attempt. If it failed, the webhook stays stopped.
func (rec *healthRecord) endTrial(failure time.Time) {
	if rec.trial.OnTrial && rec.Stopped {
		rec.LastFailure = latest(rec.LastFailure, failure)
	}
	rec.trial.OnTrial = false
}

// try reports whether an attempt may be made now: of those at a webhook on trial, there's one at a time.
// The caller says when that has ended and is recorded, unless end is nil.
func (h *Health) try(client, entity string, hook webhookcfg.Webhook) (end func(), ok bool) {
	if h == nil {
		return nil, true
	}
	key, _ := newWebhookKey(client, entity, hook.Source)
	h.mu.Lock()
	defer h.mu.Unlock()
	rec, ok := h.records.Peek(key)
	if !ok || !rec.trial.OnTrial || !rec.Since.Equal(hook.Since) {
		return nil, true
	}
	if rec.isTried {
		return nil, false
	}
	rec.isTried, rec.trial.Tried = true, time.Now()
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		rec.isTried = false
	}, true
}
