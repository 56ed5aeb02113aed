package sent_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"example.com/go-webhookcfg/auth"
	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/sent"
)

// ownQueue is a queue of your own, with one notification of the client acme. An Outbox of
// package deliver/outbox has these methods already.
type ownQueue struct{ state string }

func (q *ownQueue) Notifications(_ context.Context, client string, query sent.Query) (page sent.Page, err error) {
	n := sent.Notification{ID: "msg_1", Entity: "e1", State: q.state, Reason: "unreachable", Made: time.Date(2027, 1, 31, 12, 0, 0, 0, time.UTC)}
	if client == "acme" && (query.State == "" || query.State == n.State) && (query.Entity == "" || query.Entity == n.Entity) {
		page.Notifications = append(page.Notifications, n)
	}
	return page, nil
}

func (q *ownQueue) Notification(ctx context.Context, client, id string) (sent.Notification, error) {
	page, err := q.Notifications(ctx, client, sent.Query{})
	if err != nil || id != "msg_1" || len(page.Notifications) == 0 {
		return sent.Notification{}, sent.ErrNotFound
	}
	return page.Notifications[0], nil
}

func (q *ownQueue) PlanSendAgain(_ context.Context, client string, _ sent.Selection) (plan sent.Plan, err error) {
	if client == "acme" && q.state == "given_up" {
		plan.Count = 1
	}
	return plan, nil
}

func (q *ownQueue) SendAgain(_ context.Context, client string, _ sent.Selection) error {
	if client == "acme" {
		q.state = "waiting"
	}
	return nil
}

// A client looks for notifications that were given up, and sends them again once its server
// works. Package portal does the same in a page.
func ExampleView_SendAgain() {
	clients, err := auth.NewStatic(auth.Credential{ID: "acme", Secrets: []auth.Secret{auth.GenerateSecret()}})
	if err != nil {
		log.Fatal(err)
	}
	h, err := webhookcfg.NewHandler(store.NewMemory(), clients, nil)
	if err != nil {
		log.Fatal(err)
	}
	view := &sent.View{Handler: h, Queue: &ownQueue{state: "given_up"}}
	ctx := context.Background()
	show := func() {
		page, err := view.Notifications(ctx, "acme", sent.Query{Limit: 10})
		if err != nil {
			log.Fatal(err)
		}
		for _, n := range page.Notifications {
			fmt.Println(n.ID, n.State, n.Reason)
		}
	}
	show()
	all := sent.Selection{Scope: webhookcfg.All()}
	plan, err := view.PlanSendAgain(ctx, "acme", all)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("to send again:", plan.Count)
	if err := view.SendAgain(ctx, "acme", all); err != nil {
		log.Fatal(err)
	}
	show()
	// Output:
	// msg_1 given_up unreachable
	// to send again: 1
	// msg_1 waiting unreachable
}
