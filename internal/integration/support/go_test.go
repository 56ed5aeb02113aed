package support_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/store/sqlstore"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/deliver/outbox"
	"example.com/go-webhookcfg/webhookcfg/egress"
	"example.com/go-webhookcfg/webhookcfg/sent"
	_ "modernc.org/sqlite"
)

// goAccount is a client of a host that calls the methods of a Handler.
type goAccount struct {
	t       *testing.T
	handler *webhookcfg.Handler
	view    *sent.View
	try     func(ctx context.Context, client, entity string, target egress.URL) (string, error)
	tester  func(ctx context.Context, client, entity string, hook webhookcfg.Webhook) (string, error)
	signing string
	db      *sql.DB
	box     *outbox.Outbox

	versions map[string]int64
}

func openGo(t *testing.T) account {
	t.Helper()
	a := &goAccount{t: t, versions: make(map[string]int64)}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var err error
	a.db, err = sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "queue.db")+"?_pragma=busy_timeout(1000)&_pragma=journal_mode(WAL)&_txlock=immediate")
	must(err)
	t.Cleanup(func() { _ = a.db.Close() })
	keys, err := deliver.DerivedKeys([]byte("a-master-of-at-least-thirty-two-bytes"))
	must(err)
	webhooks := store.NewMemory()
	health, err := deliver.NewHealth(nil, &deliver.HealthOptions{OnChange: func(_ context.Context, client string, scope webhookcfg.Scope, _, after webhookcfg.DeliveryStatus) {
		if after.State == "ok" {
			a.box.Changed(client, scope)
		}
	}})
	must(err)
	sender, err := deliver.New(webhooks, keys, &deliver.Options{Policy: egress.Development(), Health: health, Timeout: 500 * time.Millisecond})
	must(err)
	t.Cleanup(sender.CloseIdleConnections)
	a.box, err = outbox.New(a.db, sqlstore.SQLite(), sender, &outbox.Options{Schedule: deliver.Schedule{time.Hour, time.Hour}})
	must(err)
	must(a.box.Migrate(t.Context()))
	a.handler, err = webhookcfg.NewHandler(webhooks, hooktest.NewVerifier(t, client, "a-long-random-secret"), &webhookcfg.Options{
		Policy: egress.Development(), ProbeMode: webhookcfg.ProbeWarn, DeliveryStatus: health.Status,
		OnEvent: func(_ context.Context, e webhookcfg.Event) {
			if (e.Operation == "set" || e.Operation == "unset") && e.Code == "" {
				a.box.Changed(e.Client, e.Scope)
			}
		},
	})
	must(err)
	a.view = &sent.View{Handler: a.handler, Queue: a.box}
	message := deliver.Message{Body: []byte(`{"type":"test"}`)}
	a.tester, a.try = sender.Tester(message), sender.Trier(message)
	a.signing, err = deliver.SigningKey(keys)(t.Context(), client, "", webhookcfg.Webhook{})
	must(err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.box.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		must(<-done)
	})
	return a
}

func (a *goAccount) must(err error) {
	a.t.Helper()
	if err != nil {
		a.t.Fatal(err)
	}
}

func (a *goAccount) set(entity, url string) {
	a.t.Helper()
	scope := webhookcfg.All()
	if entity != "" {
		scope = webhookcfg.Entity(entity)
	}
	a.must(a.handler.Set(a.t.Context(), client, scope, url))
}

func (a *goAccount) unset(entity string) {
	a.t.Helper()
	a.must(a.handler.Unset(a.t.Context(), client, webhookcfg.Entity(entity)))
}

func (a *goAccount) key() string { return a.signing }

func (a *goAccount) change(entity string) string {
	a.t.Helper()
	a.versions[entity]++
	text := body(entity, a.versions[entity])
	a.must(a.box.Enqueue(a.t.Context(), a.db, outbox.Notification{Client: client, Entity: entity, Message: deliver.Message{Body: []byte(text)}}))
	a.box.Committed(client)
	return text
}

// sees waits until a notification says why it wasn't delivered.
func (a *goAccount) sees(reason string) {
	a.t.Helper()
	if reason == "" {
		reason = "off"
	}
	isSeen := func() bool {
		page, err := a.view.Notifications(a.t.Context(), client, sent.Query{Entity: "m1", Limit: 10})
		a.must(err)
		plan, err := a.view.PlanSendAgain(a.t.Context(), client, sent.Selection{Scope: webhookcfg.All()})
		a.must(err)
		return plan.Count >= missing && slices.ContainsFunc(page.Notifications, func(n sent.Notification) bool { return n.Reason == reason })
	}
	for deadline := time.Now().Add(20 * time.Second); !isSeen(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			page, _ := a.view.Notifications(a.t.Context(), client, sent.Query{Limit: 10})
			a.t.Fatalf("no reason %s: %+v", reason, page)
		}
	}
}

func (a *goAccount) readKey() string { return a.signing }

func (a *goAccount) accepted(reason string, err error) {
	a.t.Helper()
	if reason != "" || err != nil {
		a.t.Fatalf("the test failed: %s, %v", reason, err)
	}
}

func (a *goAccount) test() {
	a.t.Helper()
	page, err := a.handler.List(a.t.Context(), client, "", 1)
	if err != nil {
		a.t.Fatal(err)
	}
	a.accepted(a.tester(a.t.Context(), client, "", page.Base))
}

func (a *goAccount) setAll(url string) {
	a.t.Helper()
	a.set("", url)
}

func (a *goAccount) tryAndSetAll(url string) {
	a.t.Helper()
	a.must(a.handler.Check(a.t.Context(), client, webhookcfg.All(), url))
	a.accepted(a.try(a.t.Context(), client, "", egress.NewURL(url)))
	a.set("", url)
}

func (a *goAccount) setEntity(entity, url string) {
	a.t.Helper()
	a.set(entity, url)
}

func (a *goAccount) sendAllAgain() {
	a.t.Helper()
	a.must(a.view.SendAgain(a.t.Context(), client, sent.Selection{Scope: webhookcfg.All()}))
}

func (a *goAccount) sendAgain(entity string) {
	a.t.Helper()
	a.must(a.view.SendAgain(a.t.Context(), client, sent.Selection{Scope: webhookcfg.Entity(entity)}))
}

func (a *goAccount) clicks() int { return 0 }
