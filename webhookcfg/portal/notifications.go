package portal

import (
	"slices"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/sent"
)

// notificationsPage shows a page of notifications, of all or of an entity.
type notificationsPage struct {
	*frame
	Sent         sentRows
	State, After string   // what the list is limited to, and where it starts
	States       []string // that it can be limited to
}

// sentRows is a part of a client's notifications.
type sentRows struct {
	List []sentRow
	Next string
}

// sentRow is a notification in a list.
type sentRow struct {
	sent.Notification
	Why  string // the key of the text for its reason
	Last *attempt
}

// attempt is an attempt to deliver a notification.
type attempt struct {
	Started time.Time
	Outcome string // the key of a text; "" in a list if the state of the notification says it
}

// showNotifications shows a page of notifications, of all or of an entity.
func showNotifications(v *visit) (any, error) {
	const perPage = 25
	if v.Options.Notifications == nil {
		return nil, notFound
	}
	p := &notificationsPage{frame: v.about("notifications", "sent.title", v.asked("id")), State: v.query.Get("state"), After: v.query.Get("after")}
	p.States, _ = sent.Words()
	var err error
	p.Sent, err = readSent(v, sent.Query{Entity: p.ID, State: p.State, After: p.After, Limit: perPage})
	return p, err
}

func readSent(v *visit, query sent.Query) (sentRows, error) {
	page, err := v.view.Notifications(v.ctx, v.Client, query)
	s := sentRows{Next: page.Next}
	for _, n := range page.Notifications {
		s.List = append(s.List, sentRow{n, whyKey(n.Reason), lastAttempt(n)})
	}
	return s, err
}

// lastAttempt returns the last attempt of a notification in a list, or nil.
func lastAttempt(n sent.Notification) *attempt {
	if len(n.History) == 0 {
		return nil
	}
	last := n.History[len(n.History)-1]
	shown := &attempt{Started: last.Started}
	switch {
	case last.Reason == "" && n.State != "delivered":
		shown.Outcome = "sent.delivered"
	case last.Reason != n.Reason:
		shown.Outcome = whyKey(last.Reason)
	}
	return shown
}

// whyKey returns the key of the text for the reason of a notification, or "" if it has none.
func whyKey(reason string) string {
	if reason == "" {
		return ""
	}
	if _, ok := texts["sent."+reason]; ok {
		return "sent." + reason
	}
	return "reason." + reason
}

// recent are the last notifications of an entity, or of all, on a page of webhooks, and how many could
// be sent again.
type recent struct {
	Sent      sentRows
	Plan      plan
	IsAsked   bool // the queue was asked
	IsUnknown bool // the queue can't be asked now
}

// readRecent reads the last notifications of an entity, or of all. If the queue can't be asked, the
// rest of the page is still there.
func readRecent(v *visit, scope webhookcfg.Scope) (r recent) {
	const atMost = 5
	if v.Options.Notifications == nil {
		return r
	}
	var err error
	r.Sent, err = readSent(v, sent.Query{Entity: scope.Entity(), Limit: atMost})
	if err == nil {
		r.Plan, err = readPlan(v, sent.Selection{Scope: scope})
	}
	r.IsAsked, r.IsUnknown = true, err != nil
	return r
}

// attempts returns all attempts of a notification, the last one first.
func attempts(n sent.Notification) (all []attempt) {
	for _, a := range slices.Backward(n.History) {
		outcome := whyKey(a.Reason)
		if outcome == "" {
			outcome = "sent.delivered"
		}
		all = append(all, attempt{a.Started, outcome})
	}
	return all
}

// notificationsTexts are the words of lists of notifications.
var notificationsTexts = map[string]string{
	"sent.title":       "Notifications",
	"sent.recent":      "Recent notifications",
	"sent.more":        "All notifications",
	"sent.none":        "There are none here.",
	"sent.search":      "None so far. Go on with the next page.",
	"sent.unknown":     "We can't show notifications right now. Try again in a moment.",
	"sent.id":          "Message ID",
	"sent.entity":      "Entity",
	"sent.made":        "Made",
	"sent.state":       "State",
	"sent.any":         "All states",
	"sent.waiting":     "Waiting",
	"sent.delivered":   "Delivered",
	"sent.given_up":    "Given up",
	"sent.dropped":     "Dropped",
	"sent.no_webhook":  "No webhook was in effect, so it was sent nowhere.",
	"sent.off":         "The entity was turned off, so it was sent nowhere.",
	"sent.stopped":     "Deliveries were stopped, so it wasn't sent.",
	"sent.due":         "Next attempt",
	"sent.attempts":    "Last attempts",
	"sent.count":       "Attempts:",
	"sent.last":        "Last attempt:",
	"sent.next":        "Next attempt:",
	"sent.turn":        "when it's its turn",
	"sent.no-attempts": "None.",
	"sent.started":     "Started",
	"sent.outcome":     "Outcome",
	"sent.body":        "Contents",
	"sent.cut":         "Only the start is shown.",
}
