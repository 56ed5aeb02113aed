package portal

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
)

// sent is a part of a client's notifications.
type sent struct {
	List    []webhookcfg.Notification
	Next    string
	Asked   bool // the queue was asked
	Unknown bool // the queue can't be asked now
}

// recent is how many notifications the pages of webhooks show.
const recent = 5

// showRecent shows the last notifications of an entity, or of all, and how many could be sent
// again. If the queue can't be asked, the rest of the page is still there.
func (v *visit) showRecent(scope webhookcfg.Scope) {
	if v.Parent.Notifications == nil {
		return
	}
	page, err := v.handler.Notifications(v.ctx, v.Client, webhookcfg.NotificationQuery{Entity: scope.Entity(), Limit: recent})
	if err == nil {
		err = v.plan(webhookcfg.Selection{Scope: scope})
	}
	v.Sent = sent{List: page.Notifications, Next: page.Next, Asked: true, Unknown: err != nil}
}

// plan finds out what sending a selection again would do.
func (v *visit) plan(s webhookcfg.Selection) (err error) {
	v.Plan, err = v.handler.PlanSendAgain(v.ctx, v.Client, s)
	return err
}

// IsRepaired reports whether the person has just repaired a webhook.
func (v *visit) IsRepaired() bool {
	return slices.Contains([]string{"done.set", "done.all", "done.test", "done.test-all"}, v.Done)
}

// showMissing finds out how many notifications are missing once the base is repaired. The page of
// an entity has found that out anyway.
func (v *visit) showMissing() {
	if v.Template == "all" && v.IsRepaired() && v.Parent.Notifications != nil {
		_ = v.plan(webhookcfg.Selection{Scope: webhookcfg.All()}) // the page is useful without it
	}
}

// trouble is a webhook whose deliveries fail.
type trouble struct {
	ID string // "" for the base
	hookView
}

// showTrouble collects the webhooks on the page whose deliveries fail or were stopped. It
// doesn't look at other pages, since a client can have any number of them.
func (v *visit) showTrouble() {
	const atMost = 5
	for _, t := range slices.Concat([]row{{"", v.Hook}}, v.Rows) {
		switch {
		case t.Hook.State != "failing" && t.Hook.State != "stopped":
		case len(v.Trouble) == atMost:
			v.MoreTrouble++
		default:
			v.Trouble = append(v.Trouble, trouble{t.ID, t.Hook})
		}
	}
	isPage := v.Find == "" && (v.Next != "" || v.After != "")
	v.IsPartial = isPage && v.Parent.DeliveryStatus != nil && !v.isUnknown
}

// States returns the states that a list can be limited to.
func (*visit) States() []string {
	states, _ := webhookcfg.NotificationWords()
	return states
}

// lastAttempt is the last attempt of a notification in a list.
type lastAttempt struct {
	Started time.Time
	Outcome string // "" if the state of the notification says it
}

// Last returns the last attempt of a notification, or nil.
func (v *visit) Last(n webhookcfg.Notification) *lastAttempt {
	if len(n.History) == 0 {
		return nil
	}
	last := n.History[len(n.History)-1]
	shown := &lastAttempt{Started: last.Started}
	switch {
	case last.Reason == "" && n.State != "delivered":
		shown.Outcome = v.T("sent.delivered")
	case last.Reason != n.Reason:
		shown.Outcome = v.Why(last.Reason)
	}
	return shown
}

// Why returns the text for the reason of a notification.
func (v *visit) Why(reason string) string {
	if _, ok := texts["sent."+reason]; ok {
		return v.T("sent." + reason)
	}
	return v.T("reason." + reason)
}

// notifications shows a page of notifications, of all or of an entity.
func (v *visit) notifications() error {
	const perPage = 25
	if v.Parent.Notifications == nil {
		return notFound
	}
	v.Template, v.Title = "notifications", "sent.title"
	v.ID, v.State = v.AskedID(), v.query.Get("state")
	page, err := v.handler.Notifications(v.ctx, v.Client, webhookcfg.NotificationQuery{Entity: v.ID, State: v.State, After: v.query.Get("after"), Limit: perPage})
	if err != nil {
		return err
	}
	v.After, v.Sent = v.query.Get("after"), sent{List: page.Notifications, Next: page.Next}
	return nil
}

// notification shows one notification.
func (v *visit) notification() error {
	const shownBody = 16 << 10
	if v.Parent.Notifications == nil {
		return notFound
	}
	n, err := v.handler.Notification(v.ctx, v.Client, v.asked("message"))
	if err != nil {
		return missing(err)
	}
	v.Template, v.Title, v.One, v.Obstacle = "notification", "one.notification", n, v.obstacle(n.Entity)
	v.One.Body, v.IsCut = n.Body[:min(len(n.Body), shownBody)], len(n.Body) > shownBody
	v.One.History = slices.Clone(n.History) // which the queue can still use
	slices.Reverse(v.One.History)
	return nil
}

// sendOneAgain sends one notification again.
func (v *visit) sendOneAgain() error {
	if v.Parent.Notifications == nil {
		return notFound
	}
	if v.Typed("message") == "" {
		return noNotification
	}
	return v.sendSelected(webhookcfg.Selection{ID: v.Typed("message")})
}

// missing says in a person's words that there's no such notification.
func missing(err error) error {
	if errors.Is(err, webhookcfg.ErrNoNotification) {
		return noNotification
	}
	return err
}

var noNotification = problem{status: http.StatusNotFound, key: "error.no_notification"}

// periods are how far back a person can send notifications again.
var periods = map[string]time.Duration{anyTime: 0, "hour": time.Hour, "day": 24 * time.Hour}

const anyTime = "any"

// Periods returns the keys of the periods in order, the longest first.
func (*visit) Periods() []string { return []string{anyTime, "day", "hour"} }

// selection returns what the form or the address selects. An address that names no period means
// all of them. A form that names none has lost it.
func (v *visit) selection(scope webhookcfg.Scope) (s webhookcfg.Selection, err error) {
	odd := problem{status: http.StatusBadRequest, key: "error.odd_address"}
	v.Since = v.query.Get("since")
	switch {
	case v.form != nil:
		v.Since, odd = v.Typed("since"), oddForm
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

// againPage says what sending again would do, for an entity.
func (v *visit) againPage() error {
	v.ID = v.AskedID()
	if v.ID == "" {
		return problem{status: http.StatusBadRequest, key: "error.no_id"}
	}
	if err := v.showPlan(webhookcfg.Entity(v.ID)); err != nil {
		return err
	}
	v.Obstacle = v.obstacle(v.ID)
	return nil
}

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

// changed returns the address of the page that shows the effect of a change.
func (v *visit) changed() string {
	id := v.Typed("id")
	switch {
	case v.Page == "send-again":
		return pageAddress("notification", url.Values{"message": {v.Typed("message")}})
	case v.Page == "again" || v.Page == "again-all":
		return entityAddress(v.Page, id)
	case id != "":
		return entityAddress("entity", id)
	}
	return pageAddress("all", nil)
}
