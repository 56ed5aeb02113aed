package portal

import (
	"time"

	"example.com/go-webhookcfg/webhookcfg"
)

// notifications shows a page of notifications, of all or of an entity.
func (v *visit) notifications() error {
	const perPage = 25
	if v.Parent.Notifications == nil {
		return notFound
	}
	v.Template, v.Title = "notifications", "sent.title"
	v.ID, v.State = v.asked("id"), v.query.Get("state")
	page, err := v.handler.Notifications(v.ctx, v.Client, webhookcfg.NotificationQuery{Entity: v.ID, State: v.State, After: v.query.Get("after"), Limit: perPage})
	if err != nil {
		return err
	}
	v.After, v.Sent = v.query.Get("after"), sent{List: page.Notifications, Next: page.Next}
	return nil
}

// sent is a part of a client's notifications.
type sent struct {
	List    []webhookcfg.Notification
	Next    string
	Asked   bool // the queue was asked
	Unknown bool // the queue can't be asked now
}

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

// recent is how many notifications the pages of webhooks show.
const recent = 5

// States returns the states that a list can be limited to.
func (*visit) States() []string {
	states, _ := webhookcfg.NotificationWords()
	return states
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

// lastAttempt is the last attempt of a notification in a list.
type lastAttempt struct {
	Started time.Time
	Outcome string // "" if the state of the notification says it
}

// Why returns the text for the reason of a notification.
func (v *visit) Why(reason string) string {
	if _, ok := texts["sent."+reason]; ok {
		return v.T("sent." + reason)
	}
	return v.T("reason." + reason)
}
