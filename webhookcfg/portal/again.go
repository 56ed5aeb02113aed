package portal

import (
	"errors"
	"net/http"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
)

// againPage says what sending again would do, for an entity.
func (v *visit) againPage() error {
	v.ID = v.asked("id")
	if v.ID == "" {
		return problem{status: http.StatusBadRequest, key: "error.no_id"}
	}
	if err := v.showPlan(webhookcfg.Entity(v.ID)); err != nil {
		return err
	}
	v.Obstacle = v.obstacle(v.ID)
	return nil
}

// againAllPage says what sending again would do, for all entities.
func (v *visit) againAllPage() error { return v.showPlan(webhookcfg.All()) }

func (v *visit) showPlan(scope webhookcfg.Scope) error {
	if v.Parent.Notifications == nil {
		return notFound
	}
	v.Template, v.Title = "again", "again.title"
	if scope.IsAll() {
		v.Title = "again.all"
	}
	s, err := v.selection(scope)
	if err != nil {
		return err
	}
	return v.plan(s)
}

// plan finds out what sending a selection again would do.
func (v *visit) plan(s webhookcfg.Selection) (err error) {
	v.Plan, err = v.handler.PlanSendAgain(v.ctx, v.Client, s)
	return err
}

// selection returns what the form or the address selects. An address that names no period means
// all of them. A form that names none has lost it.
func (v *visit) selection(scope webhookcfg.Scope) (s webhookcfg.Selection, err error) {
	odd := oddAddress
	v.Since = v.query.Get("since")
	switch {
	case v.form != nil:
		v.Since, odd = v.typed("since"), oddForm
	case !v.query.Has("since"):
		v.Since = anyTime
	}
	period, ok := periods[v.Since]
	if !ok {
		return s, odd
	}
	if s.Scope = scope; period > 0 {
		s.Since = time.Now().Add(-period)
	}
	return s, nil
}

// periods are how far back a person can send notifications again.
var periods = map[string]time.Duration{anyTime: 0, "hour": time.Hour, "day": 24 * time.Hour}

const anyTime = "any"

// Periods returns the keys of the periods in order, the longest first.
func (*visit) Periods() []string { return []string{anyTime, "day", "hour"} }

// obstacle returns the key of the text that says why nothing is sent for an entity now, or "". A page
// must not promise to send again what would be dropped again. Nothing keeps a person from trying if
// the webhook can't be read.
func (v *visit) obstacle(entity string) string {
	hook, err := v.handler.Read(v.ctx, v.Client, entity)
	switch {
	case err != nil:
		return ""
	case hook.URL.IsZero():
		return "source." + hook.Source.String()
	case v.hook(entity, hook).State == "stopped":
		return "again.stopped"
	}
	return ""
}

// IsUnderWay reports whether the client's notifications are being sent again. It can't start that
// again before it ends, and a count of the rest would be wrong a moment later.
func (v *visit) IsUnderWay() bool { return !v.Plan.Last.Started.IsZero() && v.Plan.Last.Ended.IsZero() }

// sendAgain sends notifications of an entity again.
func (v *visit) sendAgain() error {
	scope, err := v.entityScope()
	if err != nil {
		return err
	}
	return v.sendMany(scope)
}

// sendAllAgain sends notifications of all entities again.
func (v *visit) sendAllAgain() error { return v.sendMany(webhookcfg.All()) }

func (v *visit) sendMany(scope webhookcfg.Scope) error {
	if v.Parent.Notifications == nil {
		return notFound
	}
	s, err := v.selection(scope)
	if err != nil {
		return err
	}
	return v.sendSelected(s)
}

// sendSelected sends a selection again. If the queue asks to wait, the person reads what for.
func (v *visit) sendSelected(s webhookcfg.Selection) error {
	err := v.handler.SendAgain(v.ctx, v.Client, s)
	if e, ok := errors.AsType[*webhookcfg.Error](err); ok && e.Status == http.StatusTooManyRequests {
		return problem{status: e.Status, key: "error.again_wait", wait: e.RetryAfter}
	}
	return missing(err)
}
