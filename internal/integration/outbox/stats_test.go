package outbox_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/deliver/outbox"
	"example.com/go-webhookcfg/webhookcfg/egress"
	"example.com/go-webhookcfg/webhookcfg/sent"
)

// exec runs a statement that names the outbox's table {message}.
func (f *fixture) exec(parts ...any) {
	f.t.Helper()
	statement := strings.ReplaceAll(fmt.Sprint(parts...), "{message}", f.prefix+"outbox_message")
	if _, err := f.db.Exec(statement); err != nil {
		f.t.Fatal(err)
	}
}

// secondsPattern finds the seconds that have passed during a test.
var secondsPattern = regexp.MustCompile(`(\dm)\d+s`)

// TestStats: the figures say who is behind, how much, how long and why.
func TestStats(t *testing.T) {
	const minute = 60_000_000
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			f := newFixture(t, e, nil, nil)
			expect := func(what string, want outbox.Stats, first string) {
				t.Helper()
				got, err := f.box.Stats(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				behind := ""
				for _, c := range got.Clients[:min(len(got.Clients), 1)] {
					behind = secondsPattern.ReplaceAllString(c.String(), "${1}0s")
				}
				if !strings.HasPrefix(behind, first) || first == "" && behind != "" || len(got.Clients) > 10 {
					t.Errorf("%s: %q is behind, of %d, want %q", what, behind, len(got.Clients), first)
				}
				got.Clients = nil
				for _, late := range []*time.Duration{&got.Overdue.New, &got.Overdue.Retry, &got.Overdue.Failing} {
					*late = late.Truncate(time.Minute)
				}
				if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
					t.Errorf("%s: got  %+v\nwant %+v", what, got, want)
				}
			}
			expect("an empty queue", outbox.Stats{}, "")
			f.fill("a", 1500, "a")
			f.fill("b", 4, "b")
			f.exec("UPDATE {message} SET enqueued = enqueued - ", 10*minute, " WHERE id = 'b0'")
			expect("new", outbox.Stats{Waiting: 1504, Overdue: outbox.Overdue{New: 10 * time.Minute}}, `"b": 4 waiting, the first due for 10m0s, and no process sends to it`)
			f.exec("UPDATE {message} SET enqueued = enqueued - ", 20*minute, " WHERE id = 'a0'")
			expect("many", outbox.Stats{Waiting: 1504, Overdue: outbox.Overdue{New: 20 * time.Minute}}, `"a": 1000 or more waiting, the first due for 20m0s`)
			f.exec("UPDATE {message} SET grp = 4001, attempts = 1, reason = 'status', due = enqueued + ", 5*minute, " WHERE id IN ('a0', 'b0')")
			expect("retries", outbox.Stats{Waiting: 1504, Overdue: outbox.Overdue{Retry: 15 * time.Minute}}, `"a": 1000 or more waiting, the first due for 15m0s, and no process sends to it (status)`)
			f.exec("UPDATE {message} SET due = enqueued + ", 60*minute, " WHERE id IN ('a0', 'b0')")
			f.exec("UPDATE {message} SET state = 1, grp = 0, due = enqueued WHERE id LIKE 'a%' AND id <> 'a0'")
			f.exec("UPDATE {message} SET state = 2, grp = 0, due = enqueued WHERE id = 'b1'")
			f.exec("UPDATE {message} SET state = 3, grp = 0, due = enqueued WHERE id IN ('b2', 'b3')")
			expect("retries later, and what has ended", outbox.Stats{Waiting: 2, Delivered: 1499, GivenUp: 1, Dropped: 2}, "")
			if c, err := f.box.ClientStats(t.Context(), "nobody"); err != nil || c.Waiting+c.Failing != 0 || c.Overdue != 0 || c.Unclaimed {
				t.Errorf("%+v, %v", c, err)
			}
		})
	}
}

// TestStatsOfManyClients: the client that waits longest is found among more than a page.
func TestStatsOfManyClients(t *testing.T) {
	const clients = 1100
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			f := newFixture(t, e, nil, nil)
			tx, err := f.db.Begin()
			if err != nil {
				t.Fatal(err)
			}
			for i := range clients {
				if err := f.box.Enqueue(t.Context(), tx, outbox.Notification{Client: fmt.Sprintf("c%04d", i), Entity: "e", Message: deliver.Message{ID: fmt.Sprint("m", i)}}); err != nil {
					t.Fatal(err)
				}
			}
			if err := tx.Commit(); err != nil {
				t.Fatal(err)
			}
			f.exec("UPDATE {message} SET enqueued = enqueued - 3600000000 WHERE id = 'm1099'")
			s, err := f.box.Stats(t.Context())
			if err != nil || len(s.Clients) != 10 || s.Clients[0].Client != "c1099" || s.Overdue.New < time.Hour {
				t.Errorf("%+v, %v", s, err)
			}
		})
	}
}

// TestStatsOfFailing: a client with a receiver that fails is told from others.
func TestStatsOfFailing(t *testing.T) {
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			f := newFixture(t, e, nil, nil)
			f.respond = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }
			f.set("a", "/x")
			f.fill("a", 100, "m")
			stop := f.run()
			var c outbox.ClientStats
			for deadline := time.Now().Add(20 * time.Second); c.Failing == 0 || len(c.Pauses) == 0; time.Sleep(10 * time.Millisecond) {
				var err error
				if c, err = f.box.ClientStats(t.Context(), "a"); err != nil || time.Now().After(deadline) {
					t.Fatal(c, err)
				}
			}
			stop()
			if c.Waiting != 100 || c.Reason != deliver.ReasonThrottled || c.Pauses[0].Failures < 5 || c.Pauses[0].Scope != webhookcfg.All() || c.Overdue <= 0 {
				t.Errorf("%+v", c)
			}
			s, err := f.box.Stats(t.Context())
			if err != nil || s.Overdue.Failing <= 0 || s.Overdue.New != 0 || s.Overdue.Retry != 0 {
				t.Errorf("%+v, %v", s.Overdue, err)
			}
		})
	}
}

// TestStatusOfPause: clients see until when their webhook is paused, a base or an override, and no next
// attempt before that.
func TestStatusOfPause(t *testing.T) {
	for _, e := range engines {
		for _, scope := range []webhookcfg.Scope{webhookcfg.All(), webhookcfg.Entity("e")} {
			t.Run(fmt.Sprint(e.name, " ", scope), func(t *testing.T) {
				health, err := deliver.NewHealth(nil, nil)
				if err != nil {
					t.Fatal(err)
				}
				f := newFixture(t, e, &outbox.Options{Schedule: deliver.Schedule{time.Second}}, &deliver.Options{Health: health})
				f.respond = func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Retry-After", "1800")
					w.WriteHeader(http.StatusServiceUnavailable)
				}
				f.apply(webhookcfg.SetChange("a", scope, egress.NewURL(f.server.URL+"/")))
				stop := f.run()
				f.enqueue("a", "e", "m")
				f.awaitAttempt("a", "m")
				stop() // which saves the pause
				f.exec("UPDATE {message} SET due = enqueued")
				hook, err := f.store.Resolve(t.Context(), "a", "e")
				if err != nil {
					t.Fatal(err)
				}
				d, err := f.box.Status(t.Context(), "a", "e", hook)
				if left := time.Until(d.PausedUntil); err != nil || d.State != "failing" || left < 20*time.Minute || left > 31*time.Minute {
					t.Errorf("%+v, %v, %v left", d, err, left)
				}
				page, err := f.box.Notifications(t.Context(), "a", sent.Query{Limit: 1})
				if err != nil || len(page.Notifications) != 1 || page.Notifications[0].Due.Before(d.PausedUntil.Add(-time.Minute)) {
					t.Errorf("%+v, %v, in a pause until %v", page, err, d.PausedUntil)
				}
				hook.Since = hook.Since.Add(time.Microsecond)
				if d, err := f.box.Status(t.Context(), "a", "e", hook); err != nil || !d.PausedUntil.IsZero() {
					t.Errorf("set again: %+v, %v", d, err)
				}
			})
		}
	}
}
