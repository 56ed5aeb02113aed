package portal_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"time"

	"example.com/go-webhookcfg/auth"
	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/portal"
	"example.com/go-webhookcfg/webhookcfg/sent"
)

// ownQueue is a queue of your own, with one notification of the client acme. An Outbox of
// package deliver/outbox has these methods already.
type ownQueue struct {
	mu           sync.Mutex
	notification sent.Notification
}

func (q *ownQueue) Notifications(_ context.Context, client string, query sent.Query) (page sent.Page, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := q.notification
	if client == "acme" && (query.State == "" || query.State == n.State) && (query.Entity == "" || query.Entity == n.Entity) {
		page.Notifications = append(page.Notifications, n)
	}
	return page, nil
}

func (q *ownQueue) Notification(_ context.Context, client, id string) (sent.Notification, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if client != "acme" || id != q.notification.ID {
		return sent.Notification{}, sent.ErrNotFound
	}
	return q.notification, nil
}

func (q *ownQueue) PlanSendAgain(_ context.Context, client string, s sent.Selection) (plan sent.Plan, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if client == "acme" && q.selects(s) {
		plan.Count = 1
	}
	return plan, nil
}

func (q *ownQueue) SendAgain(_ context.Context, client string, s sent.Selection) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case client == "acme" && q.selects(s):
		q.notification.State = "waiting"
	case s.ID != "":
		return sent.ErrNotFound
	}
	return nil
}

// selects reports whether a selection has the notification.
func (q *ownQueue) selects(s sent.Selection) bool {
	n := q.notification
	if s.ID != "" {
		return s.ID == n.ID
	}
	return (s.Scope.IsAll() || s.Scope.Entity() == n.Entity) && n.State == "given_up" && !n.Made.Before(s.Since)
}

// With Options.Notifications, people see what was sent and what came of it, and
// send it again once their server works.
func Example_notifications() {
	clients, err := auth.NewStatic(auth.Credential{ID: "acme", Secrets: []auth.Secret{auth.GenerateSecret()}})
	if err != nil {
		log.Fatal(err)
	}
	made := time.Date(2027, 1, 31, 12, 0, 0, 0, time.UTC)
	queue := &ownQueue{notification: sent.Notification{
		ID: "msg_1", Entity: "e1", State: "given_up", Reason: "unreachable", Made: made, Attempts: 1,
		History: []sent.Attempt{{Started: made.Add(time.Second), Reason: "unreachable"}},
	}}
	handler, err := webhookcfg.NewHandler(store.NewMemory(), clients, nil)
	if err != nil {
		log.Fatal(err)
	}
	pages, err := portal.New(handler, &portal.Options{
		Client:    func(*http.Request) (client, actor string, err error) { return "acme", "ann@acme.example", nil },
		SignInURL: "/sign-in",

		Notifications: queue,
	})
	if err != nil {
		log.Fatal(err)
	}

	// A person opens the overview, and follows the link in "What is wrong".
	w := httptest.NewRecorder()
	pages.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/?page=overview", nil))
	fmt.Println("something is wrong:", strings.Contains(w.Body.String(), `<a href="?page=again-all">Send all again</a>`))
	form := url.Values{"client": {"acme"}, "since": {"any"}}
	r := httptest.NewRequest(http.MethodPost, "/?page=again-all", strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	pages.ServeHTTP(httptest.NewRecorder(), r)
	fmt.Println(queue.notification.ID, "is", queue.notification.State)
	// Output:
	// something is wrong: true
	// msg_1 is waiting
}
