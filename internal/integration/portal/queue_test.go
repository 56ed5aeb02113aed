package portal_test

import (
	"context"
	"fmt"
	"time"

	"example.com/go-webhookcfg/webhookcfg/sent"
)

// queue is a sent.Queue with a notification in each state.
type queue struct{}

func (queue) all() (all []sent.Notification) {
	made := time.Date(2026, 11, 22, 16, 1, 0, 0, time.UTC)
	reasons := map[string]string{"waiting": "unreachable", "given_up": "status", "dropped": "no_webhook"}
	states, _ := sent.Words()
	for i := range 60 {
		state := states[i%len(states)]
		n := sent.Notification{ID: fmt.Sprintf("msg_%032d", i), Entity: "orders-1", State: state, Reason: reasons[state], Made: made, Attempts: 1}
		if state == "waiting" {
			n.Due = made.Add(time.Hour)
		}
		if state != "dropped" {
			n.History = []sent.Attempt{{Started: made, Reason: n.Reason}}
		}
		n.ContentType, n.Body = "application/json", []byte(`{"type":"order.changed","text":"<b>a long line without a break, aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa</b>"}`)
		all = append(all, n)
	}
	return all
}

func (q queue) Notifications(_ context.Context, _ string, query sent.Query) (page sent.Page, err error) {
	for _, n := range q.all() {
		if (query.State == "" || n.State == query.State) && len(page.Notifications) < query.Limit {
			page.Notifications = append(page.Notifications, n)
		}
	}
	page.Next = "more"
	return page, nil
}

func (q queue) Notification(_ context.Context, _, id string) (sent.Notification, error) {
	for _, n := range q.all() {
		if n.ID == id {
			return n, nil
		}
	}
	return sent.Notification{}, sent.ErrNotFound
}

func (queue) SendAgain(context.Context, string, sent.Selection) error { return nil }

func (queue) PlanSendAgain(_ context.Context, _ string, s sent.Selection) (sent.Plan, error) {
	return sent.Plan{Count: 30, Last: sent.Progress{Selection: s, Started: time.Date(2026, 11, 22, 17, 0, 0, 0, time.UTC), Ended: time.Date(2026, 11, 22, 17, 0, 1, 0, time.UTC), Count: 12}}, nil
}
