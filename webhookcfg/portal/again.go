package portal

import (
	"errors"
	"net/http"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/sent"
)

// againPage says what sending notifications again would do, for an entity or for all of them.
type againPage struct {
	*frame
	Plan     plan
	Since    string   // the key of the period that is selected
	Periods  []string // in order, the longest first
	Obstacle obstacle
}

// plan says what sending a selection again would do.
type plan struct{ sent.Plan }

// IsUnderWay reports whether the client's notifications are being sent again. It can't start that
// again before it ends, and a count of the rest would be wrong a moment later.
func (p plan) IsUnderWay() bool { return !p.Last.Started.IsZero() && p.Last.Ended.IsZero() }

// obstacle says why nothing is sent for an entity now. It's the zero value if nothing keeps it.
type obstacle struct{ Entity, Why string } // Why is the key of a text

// showAgain says what sending again would do, for an entity.
func showAgain(v *visit) (any, error) {
	id := v.asked("id")
	if id == "" {
		return nil, problem{status: http.StatusBadRequest, key: "error.no_id"}
	}
	p, err := readAgain(v, webhookcfg.Entity(id), v.about("again", "again.title", id))
	if err != nil {
		return nil, err
	}
	p.Obstacle = readObstacle(v, id)
	return p, nil
}

// showAgainAll says what sending again would do, for all entities.
func showAgainAll(v *visit) (any, error) {
	return readAgain(v, webhookcfg.All(), v.about("again", "again.all", ""))
}

func readAgain(v *visit, scope webhookcfg.Scope, f *frame) (*againPage, error) {
	if v.Options.Notifications == nil {
		return nil, notFound
	}
	s, since, err := selection(&v.input, scope)
	if err != nil {
		return nil, err
	}
	planned, err := readPlan(v, s)
	return &againPage{frame: f, Plan: planned, Since: since, Periods: []string{anyTime, "day", "hour"}}, err
}

func readPlan(v *visit, s sent.Selection) (plan, error) {
	p, err := v.view.PlanSendAgain(v.ctx, v.Client, s)
	return plan{p}, err
}

// readObstacle finds out why nothing is sent for an entity now. A page must not promise to send
// again what would be dropped again. Nothing keeps a person from trying if the webhook can't be read.
func readObstacle(v *visit, entity string) obstacle {
	hook, err := v.handler.Read(v.ctx, v.Client, entity)
	switch {
	case err != nil:
		return obstacle{}
	case hook.URL.IsZero():
		return obstacle{entity, "source." + hook.Source.String()}
	case readDeliveries(v, entity, hook).State == "stopped":
		return obstacle{entity, "again.stopped"}
	}
	return obstacle{}
}

// periods are how far back a person can send notifications again.
var periods = map[string]time.Duration{anyTime: 0, "hour": time.Hour, "day": 24 * time.Hour}

const anyTime = "any"

// selection returns what the form or the address selects, and the key of its period. An address that
// names no period means all of them. A form that names none has lost it.
func selection(in *input, scope webhookcfg.Scope) (s sent.Selection, since string, err error) {
	odd := oddAddress
	since = in.query.Get("since")
	switch {
	case in.form != nil:
		since, odd = in.typed("since"), oddForm
	case !in.query.Has("since"):
		since = anyTime
	}
	period, ok := periods[since]
	if !ok {
		return s, "", odd
	}
	if s.Scope = scope; period > 0 {
		s.Since = time.Now().Add(-period)
	}
	return s, since, nil
}

// sendAgain sends notifications of an entity again.
func sendAgain(v *visit) error {
	scope, err := v.entityScope()
	if err != nil {
		return err
	}
	return sendMany(v, scope)
}

// sendAllAgain sends notifications of all entities again.
func sendAllAgain(v *visit) error { return sendMany(v, webhookcfg.All()) }

func sendMany(v *visit, scope webhookcfg.Scope) error {
	if v.Options.Notifications == nil {
		return notFound
	}
	s, _, err := selection(&v.input, scope)
	if err != nil {
		return err
	}
	return sendSelected(v, s)
}

// sendSelected sends a selection again. If the queue asks to wait, the person reads what for.
func sendSelected(v *visit, s sent.Selection) error {
	err := v.view.SendAgain(v.ctx, v.Client, s)
	if e, ok := errors.AsType[*webhookcfg.Error](err); ok && e.Status == http.StatusTooManyRequests {
		return problem{status: e.Status, key: "error.again_wait", wait: e.RetryAfter}
	}
	return missing(err)
}

// missing says in a person's words that there's no such notification.
func missing(err error) error {
	if errors.Is(err, sent.ErrNotFound) {
		return noNotification
	}
	return err
}

var noNotification = problem{status: http.StatusNotFound, key: "error.no_notification"}

// againTexts are the words of the pages, and of what leads to them.
var againTexts = map[string]string{
	"trouble.open":     "Repair it",
	"trouble.sent":     "Not delivered: %d (given up, dropped, or waiting for a further attempt).",
	"trouble.more":     "Not delivered: at least %d (given up, dropped, or waiting for a further attempt).",
	"again.title":      "Send again",
	"again.what":       "They're sent to the webhooks that are set now, under the same message IDs, each with a new series of attempts, as fast as your server takes them. If your server fails, they wait like new ones.",
	"again.except":     "Those of an entity without a webhook, or with one that was stopped, aren't sent: they're dropped again.",
	"again.count":      "Selected: %d notifications that were given up or dropped, or wait for a further attempt.",
	"again.more":       "Selected: at least %d notifications that were given up or dropped, or wait for a further attempt.",
	"again.maybe":      "There are too many notifications to count those that this selects.",
	"again.stopped":    "Deliveries for this entity are stopped.",
	"again.first":      "So nothing would be sent now. Repair that first.",
	"again.wait":       "You can send more again once that has ended.",
	"again.none":       "There is nothing to send again.",
	"again.all":        "Send all again",
	"again.send":       "Send them again",
	"again.since":      "How far back:",
	"again.any":        "All of them",
	"again.day":        "The last day",
	"again.hour":       "The last hour",
	"again.everything": "All entities",
	"again.from":       "(made since %s)",
	"again.going":      "Since %s, notifications are being queued again: %d so far. Reload the page to see how it goes on.",
	"again.last":       "Last time, at %s: %d were queued again. The list of notifications shows what came of them.",
	"again.progress":   "Sending again",
	"done.again":       "They're being queued again. Reload the page to see how it goes on.",
	"done.again-all":   "They're being queued again. Reload the page to see how it goes on.",
	"error.again_wait": "Notifications were sent again a moment ago, or still are.",
}
