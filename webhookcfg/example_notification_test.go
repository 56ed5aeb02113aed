package webhookcfg_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
)

// ownQueue is a queue of your own, with one notification of the client acme. An Outbox of
// package deliver/outbox has these methods already.
type ownQueue struct{ state string }

func (q *ownQueue) Notifications(_ context.Context, client string, query webhookcfg.NotificationQuery) (page webhookcfg.NotificationPage, err error) {
	n := webhookcfg.Notification{ID: "msg_1", Entity: "e1", State: q.state, Reason: "unreachable", Made: time.Date(2027, 1, 31, 12, 0, 0, 0, time.UTC)}
	if client == "acme" && (query.State == "" || query.State == n.State) && (query.Entity == "" || query.Entity == n.Entity) {
		page.Notifications = append(page.Notifications, n)
	}
	return page, nil
}

func (q *ownQueue) Notification(ctx context.Context, client, id string) (webhookcfg.Notification, error) {
	page, err := q.Notifications(ctx, client, webhookcfg.NotificationQuery{})
	if err != nil || id != "msg_1" || len(page.Notifications) == 0 {
		return webhookcfg.Notification{}, webhookcfg.ErrNoNotification
	}
	return page.Notifications[0], nil
}

func (q *ownQueue) PlanSendAgain(_ context.Context, client string, _ webhookcfg.Selection) (plan webhookcfg.SendAgainPlan, err error) {
	if client == "acme" && q.state == "given_up" {
		plan.Count = 1
	}
	return plan, nil
}

func (q *ownQueue) SendAgain(_ context.Context, client string, _ webhookcfg.Selection) error {
	if client == "acme" {
		q.state = "waiting"
	}
	return nil
}

// A client looks for notifications that were given up, and sends them again once its server
// works. Package portal does the same in a page.
func ExampleHandler_SendAgain() {
	h, err := webhookcfg.NewHandler(store.NewMemory(), oneClient{"acme", "s3cret"}, &webhookcfg.Options{
		Notifications: &ownQueue{state: "given_up"},
	})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	show := func() {
		page, err := h.Notifications(ctx, "acme", webhookcfg.NotificationQuery{Limit: 10})
		if err != nil {
			log.Fatal(err)
		}
		for _, n := range page.Notifications {
			fmt.Println(n.ID, n.State, n.Reason)
		}
	}
	show()
	all := webhookcfg.Selection{Scope: webhookcfg.All()}
	plan, err := h.PlanSendAgain(ctx, "acme", all)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("to send again:", plan.Count)
	if err := h.SendAgain(ctx, "acme", all); err != nil {
		log.Fatal(err)
	}
	show()
	// Output:
	// msg_1 given_up unreachable
	// to send again: 1
	// msg_1 waiting unreachable
}
