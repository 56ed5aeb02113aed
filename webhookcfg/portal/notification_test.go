package portal_test

import (
	"context"
	"errors"
	"fmt"
	"html"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
	"example.com/go-webhookcfg/webhookcfg/sent"
)

// queue is a sent.Queue in memory, which records what is sent again.
type queue struct {
	all   map[string][]sent.Notification // by client
	plan  sent.Plan
	err   error
	again []string

	planned int
}

func (q *queue) Notifications(_ context.Context, client string, query sent.Query) (page sent.Page, err error) {
	start := 0
	if _, err := fmt.Sscanf(query.After, "at %d", &start); err != nil && query.After != "" {
		return page, webhookcfg.ErrInvalidArgument
	}
	for i, n := range q.all[client] {
		if i < start || query.Entity != "" && n.Entity != query.Entity || query.State != "" && n.State != query.State {
			continue
		}
		if len(page.Notifications) == query.Limit {
			page.Next = fmt.Sprintf("at %d", i)
			break
		}
		page.Notifications = append(page.Notifications, n)
	}
	return page, q.err
}

func (q *queue) Notification(_ context.Context, client, id string) (sent.Notification, error) {
	for _, n := range q.all[client] {
		if n.ID == id {
			return n, q.err
		}
	}
	return sent.Notification{}, errors.Join(q.err, sent.ErrNotFound)
}

func (q *queue) SendAgain(ctx context.Context, client string, s sent.Selection) error {
	if s.ID != "" {
		if _, err := q.Notification(ctx, client, s.ID); err != nil {
			return err
		}
	}
	if q.err != nil {
		return q.err
	}
	since := ""
	if !s.Since.IsZero() {
		since = " of " + time.Since(s.Since).Round(time.Minute).String()
	}
	q.again = append(q.again, strings.TrimSpace(client+" "+s.ID)+" "+s.Scope.String()+since)
	return nil
}

func (q *queue) PlanSendAgain(context.Context, string, sent.Selection) (sent.Plan, error) {
	q.planned++
	return q.plan, q.err
}

var made = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// withQueue has 60 notifications of acme and one of another client.
func withQueue(t *testing.T) (*fixture, *queue) {
	f := newFixture(t)
	hooktest.Apply(t, f.store, hooktest.SetAll(acme, 1))
	q := &queue{all: make(map[string][]sent.Notification)}
	for i := range 60 {
		state := []string{"waiting", "delivered", "given_up", "dropped"}[i%4]
		n := sent.Notification{ID: fmt.Sprintf("msg_%02d", i), Entity: fmt.Sprint("e", i%3), State: state, Made: made, Attempts: 2}
		switch state {
		case "waiting":
			n.Reason, n.Due = "unreachable", made.AddDate(100, 0, 0).Add(time.Hour)
		case "given_up":
			n.Reason = "status"
		case "dropped":
			n.Reason = "no_webhook"
		}
		n.History = []sent.Attempt{{Started: made.Add(time.Second), Reason: "redirect"}, {Started: made.Add(time.Minute), Reason: n.Reason}}
		if state == "dropped" {
			n.History = nil
		}
		n.ContentType, n.Body = "text/html", []byte("<script>alert(1)</script>\xff")
		q.all[acme] = append(q.all[acme], n)
	}
	q.all["other"] = []sent.Notification{{ID: "msg_other", Entity: "e0", State: "delivered", Made: made}}
	f.portal.Notifications = q
	return f, q
}

// TestNotifications: a person sees what was sent, by entity and by state, in pages, and what
// came of it.
func TestNotifications(t *testing.T) {
	f, q := withQueue(t)
	p := f.serve(t)
	p.signIn()
	p.get("").expect(t, 200, "Recent notifications", "msg_04", "!msg_05", `href="?page=notifications"`, "!What is wrong", "!msg_other")
	p.get("?find=e").expect(t, 200, "!Recent notifications", "!There are none here")
	p.get("entity?id=e1").expect(t, 200, "Recent notifications", "msg_01", "!msg_00", `href="?page=notifications&amp;id=e1"`)
	p.get("entity?id=e9").expect(t, 200, "There are none here")
	q.all[acme][7].History = q.all[acme][0].History[:1]
	q.all[acme][8].Reason, q.all[acme][8].History = "", q.all[acme][1].History // sent again
	q.all[acme][5].Attempts, q.all[acme][5].History = 0, nil
	first := p.get("notifications")
	first.expect(t, 200, "msg_00", "msg_24", "!msg_25", "Waiting</span> Your server couldn&#39;t be reached, or sent no valid response in time.", "No webhook was in effect, so it was sent nowhere.", "after=at%2025")
	row := func(id string) string {
		_, rest, _ := strings.Cut(first.plain(), " "+id+" ")
		row, _, _ := strings.Cut(rest, " msg_")
		return html.UnescapeString(row)
	}
	for id, want := range map[string]string{
		"msg_00": "e0 2026-01-02 03:04 UTC Waiting Your server couldn't be reached, or sent no valid response in time. Attempts: 2 Last attempt: 2026-01-02 03:05 UTC Next attempt: 2126-01-02 04:04:05 UTC",
		"msg_01": "e1 2026-01-02 03:04 UTC Delivered Attempts: 2 Last attempt: 2026-01-02 03:05 UTC",
		"msg_02": "e2 2026-01-02 03:04 UTC Given up Your server responded with an error. Attempts: 2 Last attempt: 2026-01-02 03:05 UTC",
		"msg_03": "e0 2026-01-02 03:04 UTC Dropped No webhook was in effect, so it was sent nowhere. Attempts: 2",
		"msg_07": "e1 2026-01-02 03:04 UTC Dropped No webhook was in effect, so it was sent nowhere. Attempts: 2 Last attempt: 2026-01-02 03:04 UTC. Your server redirected us. Redirects aren't followed.",
		"msg_08": "e2 2026-01-02 03:04 UTC Waiting Attempts: 2 Last attempt: 2026-01-02 03:05 UTC. Delivered Next attempt: 2126-01-02 04:04:05 UTC",
		"msg_05": "e2 2026-01-02 03:04 UTC Delivered",
	} {
		if got := row(id); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", id, got, want)
		}
	}
	p.get("notifications?after=at%2050").expect(t, 200, "msg_50", "msg_59", "!msg_49", "!Next page", "First page")
	p.get("notifications?state=given_up&id=e1").expect(t, 200, "msg_10", "!msg_01", "!msg_02", "Given up</strong>", `state=dropped&amp;id=e1`)
	p.get("notification?message=msg_00").expect(t, 200, "msg_00", "2026-01-02 03:04:06 UTC", "redirected us", "Next attempt", "2126-01-02 04:04:05 UTC", "Send again", "!alert(1)")
	if q.all[acme][0].History[0].Reason != "redirect" {
		t.Error("the page changed what the queue returned")
	}
	p.get("notification?message=msg_03").expect(t, 200, "None.", "Dropped")
	for _, path := range []string{"notification?message=msg_other", "notification?message=", "notification?message=%00", "send-again?message=msg_other", "notification"} {
		p.get(path).expect(t, 404, "There is no such notification", "!Delivered")
	}
	for path, status := range map[string]int{
		"notifications?state=Waiting": 400, "notifications?after=x": 400, "notifications?id=e*": 400, "notifications?message=msg_00": 400,
		"notifications?state=waiting&state=dropped": 400, "again?id=e1&since=year": 400, "again-all?since=": 400, "again": 400, "again-all?id=e1": 400,
		"notifications?id=": 400, "notifications?id=&state=waiting": 400, "key?id=": 400, "sample?id=": 400, "test?id=": 400,
	} {
		if got := p.get(path); got.status != status {
			t.Errorf("%s: got %d, want %d", path, got.status, status)
		}
	}
	p.get("notifications?id=").expect(t, 400, "Type the ID of an entity", "!msg_00")
	q.all[acme] = nil
	p.get("notifications").expect(t, 200, "There are none here")

	f, _ = withQueue(t)
	f.portal.NotificationBodies = true
	p = f.serve(t)
	p.signIn()
	p.get("notification?message=msg_00").expect(t, 200, "&lt;script&gt;alert(1)&lt;/script&gt;", "text/html", "!<script>")
}

// TestSendAgain: a person reads how many notifications are sent again before they are, for one,
// an entity or all, and sees how it goes.
func TestSendAgain(t *testing.T) {
	f, q := withQueue(t)
	p := f.serve(t)
	p.signIn()
	p.post("send-again", "message", "msg_02").expect(t, 200, "It&#39;s queued again.", "msg_02")
	p.post("send-again", "message", "msg_other").expect(t, 404, "There is no such notification")
	p.post("send-again").expect(t, 404, "There is no such notification")

	p.get("again?id=e1").expect(t, 200, "There is nothing to send again", "!Send them again")
	q.plan = sent.Plan{Count: 312}
	p.get("").expect(t, 200, "What is wrong", "Not delivered: 312", `href="?page=again-all"`)
	p.get("again?id=e1").expect(t, 200, "Selected: 312 notifications", "Send them again", `name="id" value="e1"`, `name="since" value="any"`, `since=hour`)
	last := &q.plan.Last
	q.plan = sent.Plan{Count: 1000, IsMore: true, Last: sent.Progress{Selection: sent.Selection{Scope: webhookcfg.All()}, Started: made, Count: 500}}
	p.get("again-all?since=day").expect(t, 200, "All entities</strong><br>", "500 so far", "You can send more again once that has ended.", "!Selected", "!Send them again")
	last.Selection = sent.Selection{Scope: webhookcfg.Entity("e2"), Since: made.Add(-time.Hour)}
	for _, path := range []string{"", "again-all", "again?id=e1"} {
		p.get(path).expect(t, 200, `<strong dir="auto">e2</strong> (made since 2026-01-02 02:04 UTC)`, "500 so far", "!All entities<")
	}
	p.get("").expect(t, 200, "at least 1000", "500 so far")
	last.Ended = made
	p.get("again?id=e1").expect(t, 200, `<strong dir="auto">e2</strong>`, "500 were queued again")
	p.get("again-all?since=day").expect(t, 200, "Selected: at least 1000 notifications", "500 were queued again", `name="since" value="day"`)
	p.get("").expect(t, 200, "!e2</strong>")
	p.post("again", "id", "e1", "since", "any").expect(t, 200, "They&#39;re being queued again.")
	p.post("again", "id", "e1", "since", "hour").expect(t, 200, "They&#39;re being queued again.")
	p.post("again-all", "since", "day").expect(t, 200, "They&#39;re being queued again.")
	if want := []string{acme + " msg_02 invalid", acme + " entity e1", acme + " entity e1 of 1h0m0s", acme + " all of 24h0m0s"}; !slices.Equal(q.again, want) {
		t.Errorf("sent again: %q", q.again)
	}

	q.again = nil
	for _, refused := range []struct {
		path   string
		fields []string
		status int
	}{
		{"again", []string{"since", "any"}, 400},
		{"again", []string{"since", "any", "id", ""}, 400},
		{"again", []string{"since", "any", "id", "e*"}, 400},
		{"again-all", []string{"since", "any", "id", "e1"}, 400},
		{"again-all", []string{"since", "year"}, 400},
		{"again?id=e1", []string{"since", "any"}, 400},
		{"again", []string{"id", "e1", "client", "other"}, 409},
		{"again-all", []string{"client", "other"}, 409},
		{"send-again", []string{"message", "msg_02", "client", "other"}, 409},
	} {
		if got := p.post(refused.path, refused.fields...); got.status != refused.status {
			t.Errorf("%s %q: got %d, want %d", refused.path, refused.fields, got.status, refused.status)
		}
	}
	r := p.request("POST", "again-all", "since", "any")
	r.Header.Set("Origin", "https://evil.example.com")
	p.do(r).expect(t, 403, "another site")
	q.err = errBroken
	p.post("again", "id", "e1", "since", "any").expect(t, 503, "!queued again.")
	p.get("").expect(t, 200, "We can&#39;t show notifications right now", "Default")
	p.get("entity?id=e1").expect(t, 200, "We can&#39;t show notifications right now", "Change")
	if len(q.again) > 0 {
		t.Errorf("sent again: %q", q.again)
	}
}

// busyQueue is a queue that has just sent something again.
type busyQueue struct{ *queue }

func (busyQueue) SendAgain(context.Context, string, sent.Selection) error {
	return fmt.Errorf("busy: %w", waitError(90*time.Second))
}

// TestSendAgainTooSoon: a person who sends something again too soon reads how long to wait, on the
// page with the form.
func TestSendAgainTooSoon(t *testing.T) {
	f, q, _ := complete(t)
	f.portal.Notifications = busyQueue{q}
	p := f.serve(t)
	p.signIn()
	for _, path := range formPaths {
		if !strings.Contains(path, "again") {
			continue
		}
		got := p.postRaw(path, filledIn(t, formFields(path)).Encode())
		got.expect(t, 429, "Notifications were sent again a moment ago", "Try again in 90 s.", `<form method="post" action="?page=`+path+`">`)
		if wait := got.header.Get("Retry-After"); wait != "90" {
			t.Errorf("%s: Retry-After: %s", path, wait)
		}
	}
}

// TestWithoutQueue: without Options.Notifications, the pages don't exist.
func TestWithoutQueue(t *testing.T) {
	p := newFixture(t).serve(t)
	p.signIn()
	p.get("").expect(t, 200, "!Recent notifications", "!What is wrong")
	for _, path := range []string{"notifications", "notification?message=m", "again?id=e1", "again-all", "send-again?message=m"} {
		p.get(path).expect(t, 404, "There is no such page")
	}
	for path, fields := range map[string][]string{"again": {"id", "e1"}, "again-all": nil, "send-again": {"message", "m"}} {
		p.post(path, fields...).expect(t, 404, "There is no such page")
	}
}

// TestTroubleFirst: what is wrong comes before everything else.
func TestTroubleFirst(t *testing.T) {
	f := newFixture(t)
	f.handler.DeliveryStatus = func(_ context.Context, _, entity string, _ webhookcfg.Webhook) (webhookcfg.DeliveryStatus, error) {
		switch entity {
		case "":
			return webhookcfg.DeliveryStatus{State: "failing", Reason: "unreachable"}, nil
		case "e1":
			return webhookcfg.DeliveryStatus{State: "stopped", Reason: "gone"}, nil
		}
		return webhookcfg.DeliveryStatus{State: "ok"}, nil
	}
	for _, c := range []webhookcfg.Change{
		webhookcfg.SetChange(acme, webhookcfg.All(), egress.NewURL(hookURL)),
		webhookcfg.SetChange(acme, webhookcfg.Entity("e1"), egress.NewURL(hookURL)),
		webhookcfg.SetChange(acme, webhookcfg.Entity("e2"), egress.NewURL(hookURL)),
	} {
		hooktest.Apply(t, f.store, hooktest.At(1, c))
	}
	p := f.serve(t)
	p.signIn()
	page := p.get("")
	page.expect(t, http.StatusOK, "What is wrong", `<a href="?page=entity&amp;id=e1">Repair it</a>`, `<a href="?page=all">Repair it</a>`, `!<a href="?page=entity&amp;id=e2">Repair it</a>`)
	if strings.Index(page.text, "What is wrong") > strings.Index(page.text, "Default</h2>") {
		t.Error("the base comes first")
	}
}

// TestNextStep: once somebody has repaired a webhook, the page leads to the notifications that are
// missing. It doesn't if they have turned the webhook off, or if nothing is missing.
func TestNextStep(t *testing.T) {
	f, q, _ := complete(t)
	p := f.serve(t)
	p.signIn()
	const one, all = `class="notice good" role="status"><p>%s</p><p>Not delivered: 3 (given up, dropped, or waiting for a further attempt). <a href="?page=again&amp;id=e1">`, `class="notice good" role="status"><p>%s</p><p>Not delivered: 3 (given up, dropped, or waiting for a further attempt). <a href="?page=again-all">`
	p.post("test", "id", "e1").expect(t, 200, fmt.Sprintf(one, "The test was accepted by your server."))
	p.post("set", "id", "e1", "url", otherURL).expect(t, 200, fmt.Sprintf(one, "The webhook is set."))
	p.post("test-all").expect(t, 200, fmt.Sprintf(all, "The test was accepted by your server."))
	p.post("all", "url", otherURL, "confirm", "all").expect(t, 200, fmt.Sprintf(all, "The default is set for all entities."))
	asked := q.planned
	p.get("all").expect(t, 200, "!Not delivered")
	if q.planned > asked {
		t.Error("the page of all asks the queue without a reason")
	}
	p.post("unset", "id", "e1").expect(t, 200, "has no webhook now.", "!Not delivered")
	p.post("unset-all", "confirm", "all").expect(t, 200, "are removed.", "!Not delivered")
	q.plan.Count = 0
	p.post("set", "id", "e1", "url", otherURL).expect(t, 200, "The webhook is set.", "!Not delivered")
	q.err = errBroken
	p.post("all", "url", otherURL, "confirm", "all").expect(t, 200, "The default is set for all entities.", "!Not delivered")
}

// TestTroubleOnPages: the overview says what is wrong with the webhooks on its page, and that
// there are more pages. It never says that all is well if it hasn't looked.
func TestTroubleOnPages(t *testing.T) {
	f := newFixture(t)
	stopped := map[string]bool{"e39": true}
	var err error
	f.handler.DeliveryStatus = func(_ context.Context, _, entity string, _ webhookcfg.Webhook) (webhookcfg.DeliveryStatus, error) {
		if stopped[entity] {
			return webhookcfg.DeliveryStatus{State: "stopped", Reason: "gone"}, err
		}
		return webhookcfg.DeliveryStatus{State: "ok"}, err
	}
	hooktest.Apply(t, f.store, hooktest.SetAll(acme, 1))
	for i := range 40 {
		hooktest.Apply(t, f.store, hooktest.Set(acme, fmt.Sprintf("e%02d", i), i+2))
	}
	p := f.serve(t)
	p.signIn()
	const repair, next = "Repair it", `<a href="?page=overview&amp;after=e24">Next page</a>`
	p.get("").expect(t, 200, "What is wrong", "No failing deliveries are known for the default and the webhooks on this page.", next, `!class="trouble"`, "!"+repair)
	p.get("?after=e24").expect(t, 200, "What is wrong", `<a href="?page=entity&amp;id=e39">Repair it</a>`, "This is about the default and the webhooks on this page.", `<a href="?page=overview">First page</a>`, "!No failing deliveries")
	p.get("?find=e3").expect(t, 200, "What is wrong", repair, "!on this page")
	p.get("?find=e1").expect(t, 200, "!What is wrong")
	for i := range 8 {
		stopped[fmt.Sprintf("e%02d", i)] = true
	}
	page := p.get("")
	page.expect(t, 200, `<a href="#list">Others in the list below: 3.</a>`, "This is about the default", next)
	if n := strings.Count(page.text, repair); n != 5 {
		t.Errorf("%d links", n)
	}
	err = errBroken
	p.get("").expect(t, 200, "Not known right now", "!No failing deliveries", "!What is wrong")
	f.handler.DeliveryStatus = nil
	p = f.serve(t)
	p.signIn()
	p.get("").expect(t, 200, "!What is wrong", "!on this page")
}

// TestSendAgainOfQueueThatFails: if the queue fails, the person can send the same form again, and none
// for all.
func TestSendAgainOfQueueThatFails(t *testing.T) {
	f, q := withQueue(t)
	q.err = errBroken
	p := f.serve(t)
	p.signIn()
	page := p.post("again", "id", "e1", "since", "hour")
	page.expect(t, http.StatusServiceUnavailable, `role="alert"`, `action="?page=again"`, "!again-all")
	if form := page.hidden(); form.Get("id") != "e1" || form.Get("since") != "hour" {
		t.Errorf("the form is %v", form)
	}
}

// TestSendAgainAsFromGo: for the same client and selection, the page and [sent.View] send
// the same again, or neither sends anything.
func TestSendAgainAsFromGo(t *testing.T) {
	for _, id := range []string{"msg_02", "msg_other", "msg_99", "", "\x00", "é", strings.Repeat("x", 300)} {
		for _, selection := range []struct {
			path   string
			fields []string
			s      sent.Selection
		}{
			{"send-again", []string{"message", id}, sent.Selection{ID: id}},
			{"again", []string{"id", id, "since", "any"}, sent.Selection{Scope: webhookcfg.Entity(id)}},
			{"again-all", []string{"since", "any"}, sent.Selection{Scope: webhookcfg.All()}},
		} {
			f, byPage := withQueue(t)
			p := f.serve(t)
			p.signIn()
			page := p.post(selection.path, selection.fields...)
			f, byGo := withQueue(t)
			view := &sent.View{Handler: hooktest.NewHandler(t, f.store, f.verifier, &f.handler), Queue: f.portal.Notifications}
			err := view.SendAgain(t.Context(), acme, selection.s)
			if !slices.Equal(byPage.again, byGo.again) || (page.status == 200) != (err == nil) {
				t.Errorf("%s %q: the page (%d) sent %q again, Go (%v) %q", selection.path, selection.fields, page.status, byPage.again, err, byGo.again)
			}
		}
	}
}

// TestPromises: no page promises to send again what would be dropped again, because its entity is
// turned off or has no webhook, or because deliveries were stopped. The page says so, and leads to
// where a person can repair that.
func TestPromises(t *testing.T) {
	f, q := withQueue(t)
	q.plan.Count = 7
	for i, id := range []string{"e0", "e1", "e2", "off", "stopped"} {
		q.all[acme][i].ID, q.all[acme][i].Entity = "msg_of_"+id, id
	}
	hooktest.Apply(t, f.store, hooktest.Set(acme, "stopped", 2), hooktest.Unset(acme, "off", 3))
	f.handler.DeliveryStatus = func(_ context.Context, _, entity string, _ webhookcfg.Webhook) (webhookcfg.DeliveryStatus, error) {
		switch entity {
		case "stopped":
			return webhookcfg.DeliveryStatus{State: "stopped", Reason: "gone"}, nil
		case "e1":
			return webhookcfg.DeliveryStatus{}, errBroken
		}
		return webhookcfg.DeliveryStatus{State: "failing", Reason: "status"}, nil
	}
	p := f.serve(t)
	p.signIn()
	const never, oneByOne, many = "So nothing would be sent now.", "It's sent to the webhook that is set now", "Selected: 7 notifications"
	expect := func(id, why string) {
		t.Helper()
		for path, promise := range map[string]string{"notification?message=msg_of_" + id: oneByOne, "again?id=" + id: many} {
			page := p.get(path)
			page.text = html.UnescapeString(page.text)
			if why == "" {
				page.expect(t, 200, promise, "!"+never, "<button class=\"main\"")
			} else {
				page.expect(t, 200, why, never, `<a href="?page=entity&id=`+id+`">Repair it</a>`, "!"+promise, "!<button class=\"main\"")
			}
		}
	}
	expect("e0", "")
	expect("e1", "") // whose state isn't known
	expect("off", "This entity is turned off")
	expect("stopped", "Deliveries for this entity are stopped.")
	const except = "aren&#39;t sent: they&#39;re dropped again."
	p.get("again-all").expect(t, 200, many, except)
	p.get("again?id=e0").expect(t, 200, "!"+except)

	hooktest.Apply(t, f.store, hooktest.UnsetAll(acme, 4))
	expect("e0", "Nothing is set for this entity")

	q.plan = sent.Plan{IsMore: true}
	p.get("again-all?since=hour").expect(t, 200, "too many notifications to count", "Send them again", "!Selected")
}

// TestCutOff: a page that shows only a part says so, and never that there's nothing.
func TestCutOff(t *testing.T) {
	f, q := withQueue(t)
	f.portal.NotificationBodies = true
	calls := 0
	f.store = emptyPages{f.store.(lister), &calls}
	f.portal.Notifications = emptyQueue{q}
	q.all[acme][0].Body = []byte(strings.Repeat("x", 16<<10))
	q.all[acme][1].Body = []byte(strings.Repeat("x", 16<<10+1))
	p := f.serve(t)
	p.signIn()
	const cut, search, none = "Only the start is shown.", "None so far. Go on with the next page.", "There are none here."
	p.get("notification?message=msg_00").expect(t, 200, "!"+cut, "Last attempts")
	p.get("notification?message=msg_01").expect(t, 200, cut)
	p.get("?find=e").expect(t, 200, search, "Next page", "!starts like this")
	p.get("").expect(t, 200, search, "!No entity has", "All notifications", "!"+none)
	p.get("notifications").expect(t, 200, search, "Next page", "!"+none)

	f, _ = withQueue(t)
	p = f.serve(t)
	p.signIn()
	p.get("?find=e&after=e9").expect(t, 200, none, "!starts like this")
	p.get("?after=e9").expect(t, 200, none, "!No entity has")
}

// emptyQueue finds nothing within the time that a sent.Queue has.
type emptyQueue struct{ *queue }

func (emptyQueue) Notifications(context.Context, string, sent.Query) (sent.Page, error) {
	return sent.Page{Next: "more"}, nil
}

// TestDueNow: the next attempt of a notification is never in the past. One that's due waits for its turn.
func TestDueNow(t *testing.T) {
	f, q := withQueue(t)
	for _, all := range q.all {
		for i := range all {
			if !all[i].Due.IsZero() {
				all[i].Due = made
			}
		}
	}
	p := f.serve(t)
	p.signIn()
	for _, path := range []string{"notifications", "notification?message=msg_00"} {
		page := p.get(path)
		page.text = html.UnescapeString(page.text)
		page.expect(t, 200, "Next attempt", "when it's its turn")
	}
}
