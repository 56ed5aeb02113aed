package outbox_test

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/deliver/outbox"
	"example.com/go-webhookcfg/webhookcfg/egress"
	"example.com/go-webhookcfg/webhookcfg/sent"
)

// shownRow is a row as a test puts it into the tables.
type shownRow struct {
	seq            int
	client, entity string
	state          int
	group          int64
	due            int64
	attempts       int
	reason         string
	enqueued       int64
}

func (r shownRow) id() string { return fmt.Sprint("m", r.seq) }

// fillRows enqueues notifications and makes them look as if they had a past.
func (f *fixture) fillRows(rows []shownRow) {
	f.t.Helper()
	tx, err := f.db.Begin()
	if err != nil {
		f.t.Fatal(err)
	}
	for _, r := range rows {
		n := notification(r.client, r.entity, r.id())
		n.Message.Body = []byte(`{"n":` + fmt.Sprint(r.seq) + `}`)
		if err := f.box.Enqueue(f.t.Context(), tx, n); err != nil {
			f.t.Fatal(err)
		}
		_, err := tx.Exec(fmt.Sprintf(`UPDATE %soutbox_message SET state = %d, grp = %d, due = %d, attempts = %d, reason = '%s', enqueued = %d WHERE id = '%s'`,
			f.prefix, r.state, r.group, r.due, r.attempts, r.reason, r.enqueued, r.id()))
		if err != nil {
			f.t.Fatal(err)
		}
	}
	if err := tx.Commit(); err != nil {
		f.t.Fatal(err)
	}
}

const (
	waiting = iota
	delivered
	givenUp
	dropped
)

var stateWords = [...]string{"waiting", "delivered", "given_up", "dropped"}

// The groups of what nobody has looked at yet, and of what was sent again. The others are those of
// the webhooks.
const (
	fresh = 0
	again = 1
)

// groupOf is the group of a setting of a webhook.
func groupOf(setting int64, isOverride, isTried bool) int64 {
	group := 4 * setting
	if isOverride {
		group += 2
	}
	if isTried {
		group++
	}
	return group
}

// tried is the group of what waits for a retry at a client's base.
func (f *fixture) tried(client string) int64 {
	f.t.Helper()
	base, err := f.store.Resolve(f.t.Context(), client, "e")
	if err != nil {
		f.t.Fatal(err)
	}
	return groupOf(base.Since.UnixMicro(), base.Source == webhookcfg.SourceOverride, true)
}

// randomRows are rows of three clients, whose names start alike.
func randomRows(n int) (rows []shownRow) {
	now := time.Now().UnixMicro()
	for i := range n {
		r := shownRow{
			seq: i, client: []string{"a", "ab", "a\x00"}[min(rand.IntN(6), 2)], entity: []string{"e", "ee", "f"}[rand.IntN(3)],
			state: rand.IntN(4), enqueued: now - int64(n-i)*1000,
		}
		if r.client == "a\x00" {
			r.client = "a"
		}
		switch r.state {
		case waiting:
			setting, isOverride := 1000+rand.Int64N(3), rand.IntN(2) == 0
			switch rand.IntN(4) {
			case 0:
				r.group, r.due = again, now-rand.Int64N(10)*1000
			case 1:
				r.group = groupOf(setting, isOverride, false)
			case 2:
				r.group = groupOf(setting, isOverride, true)
				r.due, r.attempts, r.reason = now+rand.Int64N(1e9), 1+rand.IntN(5), "unreachable"
			}
		case delivered:
			r.due, r.attempts = now-rand.Int64N(10)*1000, 1
		case givenUp:
			r.due, r.attempts, r.reason = now-rand.Int64N(10)*1000, 10, "status"
		case dropped:
			r.due, r.reason = now-rand.Int64N(10)*1000, []string{"no_webhook", "off", "stopped", "gone", "message"}[rand.IntN(5)]
		}
		rows = append(rows, r)
	}
	return rows
}

// wanted returns the rows of a query in their order.
func wanted(rows []shownRow, client string, q sent.Query) (found []shownRow) {
	for _, r := range rows {
		if r.client == client && (q.Entity == "" || r.entity == q.Entity) && (q.State == "" || stateWords[r.state] == q.State) {
			found = append(found, r)
		}
	}
	slices.SortFunc(found, func(a, b shownRow) int {
		newest := cmp.Compare(b.seq, a.seq)
		switch {
		case q.State == "" || q.Entity != "":
			return newest
		case q.State == "waiting":
			return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.due, b.due), -newest)
		default:
			return cmp.Or(cmp.Compare(b.due, a.due), newest)
		}
	})
	return found
}

// TestView: the pages of every query have exactly the client's notifications, in order, each
// once.
func TestView(t *testing.T) {
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			f := newFixture(t, e, nil, nil)
			rows := randomRows(300)
			f.fillRows(rows)
			for _, client := range []string{"a", "ab", "b"} {
				for _, entity := range []string{"", "e", "ee", "g"} {
					for _, state := range []string{"", "waiting", "delivered", "given_up", "dropped"} {
						for _, limit := range []int{1, 7, 1000} {
							q := sent.Query{Entity: entity, State: state, Limit: limit}
							var got, want []string
							for _, r := range wanted(rows, client, q) {
								want = append(want, r.id())
							}
							for pages := 0; ; pages++ {
								page, err := f.box.Notifications(t.Context(), client, q)
								if err != nil || pages > len(rows) {
									t.Fatal(client, q, err)
								}
								for _, n := range page.Notifications {
									got = append(got, n.ID)
									checkShown(t, rows, n)
								}
								if q.After = page.Next; q.After == "" {
									break
								}
							}
							if diff := gocmp.Diff(want, got); diff != "" {
								t.Fatalf("%s %+v: -want +got:\n%s", client, q, diff)
							}
						}
					}
				}
			}
			page, err := f.box.Notifications(t.Context(), "ab", sent.Query{Limit: 1})
			if err != nil {
				t.Fatal(err)
			}
			for _, after := range []string{"x", "e30", "bnVsbA", "eyJyIjotMX0", "eyJyIjo5OX0", "eyJkIjoiYSJ9", page.Next} {
				if page, err := f.box.Notifications(t.Context(), "a", sent.Query{After: after, Limit: 1000}); !errors.Is(err, webhookcfg.ErrInvalidArgument) {
					t.Errorf("after %q: %d, %v", after, len(page.Notifications), err)
				}
			}
			for _, r := range rows {
				for _, client := range []string{"a", "ab"} {
					n, err := f.box.Notification(t.Context(), client, r.id())
					switch {
					case client != r.client && !errors.Is(err, sent.ErrNotFound):
						t.Errorf("%s of %s for %s: %+v, %v", r.id(), r.client, client, n, err)
					case client == r.client:
						if checkShown(t, rows, n); err != nil || string(n.Body) != fmt.Sprintf(`{"n":%d}`, r.seq) || n.History != nil {
							t.Errorf("%+v: %v", n, err)
						}
					}
				}
			}
		})
	}
}

// TestNextTellsNothingOfOthers: what a client sees of a page's end doesn't depend on what others have
// enqueued meanwhile, nor on when an attempt ended.
func TestNextTellsNothingOfOthers(t *testing.T) {
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			f, busy := newFixture(t, e, nil, nil), newFixture(t, e, nil, nil)
			now := time.Now().Truncate(time.Second).UnixMicro()
			for i := range 32 {
				r := shownRow{seq: i, client: "a", entity: "e", state: i % 4, due: now + int64(i)*1e6, enqueued: now}
				if r.state == waiting {
					r.group = []int64{fresh, again, groupOf(now, false, false), groupOf(now, true, true)}[i/4%4]
				}
				isUntried := r.state == waiting && r.group != again && r.group%2 == 0
				if isUntried {
					r.due = 0
				}
				f.fillRows([]shownRow{r})
				for range 3 {
					busy.enqueue("b", "e", fmt.Sprint("other", i))
				}
				if r.due += 123; isUntried {
					r.due = 0
				}
				busy.fillRows([]shownRow{r})
			}
			for _, state := range []string{"", "waiting", "delivered", "given_up", "dropped"} {
				for _, entity := range []string{"", "e"} {
					q := sent.Query{State: state, Entity: entity, Limit: 1}
					for pages := 0; ; pages++ {
						one, err := f.box.Notifications(t.Context(), "a", q)
						if err != nil {
							t.Fatal(err)
						}
						other, err := busy.box.Notifications(t.Context(), "a", q)
						if err != nil {
							t.Fatal(err)
						}
						if one.Next != other.Next {
							t.Errorf("%+v: %s, and beside others %s", q, one.Next, other.Next)
						}
						if q.After = one.Next; q.After == "" {
							if pages < 8 {
								t.Errorf("%+v: %d pages", q, pages)
							}
							break
						}
					}
				}
			}
		})
	}
}

// TestPagesWhileSent: notifications that leave their place in a list while somebody pages through it
// hide no other one: those that are sent again, those whose attempt has come, and those that move to
// a webhook.
func TestPagesWhileSent(t *testing.T) {
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			now := time.Now().UnixMicro()
			move := func(set string) func(f *fixture, id string) error {
				return func(f *fixture, id string) error {
					_, err := f.db.Exec(fmt.Sprintf("UPDATE %soutbox_message SET %s WHERE id = '%s'", f.prefix, set, id))
					return err
				}
			}
			for what, test := range map[string]struct {
				row   shownRow
				every int64 // between their due times
				leave func(f *fixture, id string) error
			}{
				"sent again": {shownRow{state: givenUp, due: now, attempts: 1, reason: "status"}, 1e6, func(f *fixture, id string) error {
					return f.box.SendAgain(t.Context(), "a", sent.Selection{ID: id})
				}},
				"tried":            {shownRow{group: groupOf(1000, false, true), due: now, attempts: 1, reason: "status"}, 1e6, move(fmt.Sprint("due = ", now+3600*1000000))},
				"to a webhook":     {shownRow{group: fresh}, 0, move(fmt.Sprint("grp = ", groupOf(1000, false, false)))},
				"to a new setting": {shownRow{group: groupOf(1000, true, true), due: now, attempts: 1, reason: "status"}, 1, move(fmt.Sprint("grp = ", groupOf(2000, true, true)))},
			} {
				f := newFixture(t, e, nil, nil)
				var rows []shownRow
				for i := range 20 {
					r := test.row
					r.seq, r.client, r.entity, r.enqueued = i, "a", "e", now
					r.due += int64(i) * test.every
					rows = append(rows, r)
				}
				f.fillRows(rows)
				shown := map[string]bool{}
				q := sent.Query{State: stateWords[test.row.state], Limit: 3}
				for range 50 {
					page, err := f.box.Notifications(t.Context(), "a", q)
					if err != nil {
						t.Fatal(err)
					}
					for _, n := range page.Notifications {
						if shown[n.ID] {
							continue // it has left already
						}
						shown[n.ID] = true
						if err := test.leave(f, n.ID); err != nil {
							t.Fatal(err)
						}
					}
					if q.After = page.Next; q.After == "" {
						break
					}
				}
				if len(shown) != len(rows) {
					t.Errorf("%s: %d of %d were shown", what, len(shown), len(rows))
				}
			}
		})
	}
}

// checkShown compares a notification with its row.
func checkShown(t *testing.T, rows []shownRow, n sent.Notification) {
	t.Helper()
	var seq int
	if _, err := fmt.Sscanf(n.ID, "m%d", &seq); err != nil {
		t.Fatal(err)
	}
	r := rows[seq]
	want := sent.Notification{ID: r.id(), Entity: r.entity, State: stateWords[r.state], Reason: r.reason, Made: time.UnixMicro(r.enqueued), Attempts: r.attempts}
	if r.state == waiting && r.attempts > 0 {
		want.Due = time.UnixMicro(r.due)
	}
	if r.reason == "message" {
		want.Reason = ""
	}
	n.Body, n.ContentType = nil, ""
	if diff := gocmp.Diff(want, n); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestHistory: a notification shows its attempts, when they started and what they came to, and
// not more of them than there's room for.
func TestHistory(t *testing.T) {
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			f := newFixture(t, e, &outbox.Options{Schedule: deliver.Schedule{time.Millisecond, time.Millisecond}}, &deliver.Options{MaxPause: time.Millisecond})
			var status atomic.Int64
			status.Store(404)
			f.respond = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(int(status.Load())) }
			f.set("a", "/")
			f.run()
			start := time.Now().Truncate(time.Second)
			f.enqueue("a", "e", "m1")
			f.awaitEnds(outbox.GivenUp, 1)
			n, err := f.box.Notification(t.Context(), "a", "m1")
			if err != nil || n.State != "given_up" || n.Reason != "status" || n.Attempts != 3 || len(n.History) != 3 || n.ContentType != "" {
				t.Fatalf("%+v, %v", n, err)
			}
			for _, a := range n.History {
				if a.Reason != "status" || a.Started.Before(start) || a.Started.After(time.Now()) {
					t.Errorf("%+v", a)
				}
			}
			for range 15 {
				f.forgetSendAgain()
				if err := f.box.SendAgain(t.Context(), "a", sent.Selection{ID: "m1"}); err != nil {
					t.Fatal(err)
				}
				f.awaitEnds(outbox.GivenUp, 1)
			}
			status.Store(204)
			f.forgetSendAgain()
			if err := f.box.SendAgain(t.Context(), "a", sent.Selection{ID: "m1"}); err != nil {
				t.Fatal(err)
			}
			f.awaitEnds(outbox.Delivered, 1)
			n, err = f.box.Notification(t.Context(), "a", "m1")
			if err != nil || n.State != "delivered" || n.Reason != "" || n.Attempts != 1 || len(n.History) < 15 || len(n.History) > 40 {
				t.Fatalf("%+v, %v", n, err)
			}
			list, err := f.box.Notifications(t.Context(), "a", sent.Query{Limit: 1})
			if err != nil || len(list.Notifications) != 1 || !slices.Equal(list.Notifications[0].History, n.History) {
				t.Errorf("the list shows %+v, %v", list, err)
			}
			for i, a := range n.History {
				want := "status"
				if i == len(n.History)-1 {
					want = ""
				}
				if a.Reason != want || a.Started.Before(start) || a.Started.After(time.Now()) {
					t.Errorf("attempt %d: %+v", i, a)
				}
			}
		})
	}
}

// forgetSendAgain makes it long ago that notifications were sent again.
func (f *fixture) forgetSendAgain() {
	f.t.Helper()
	f.exec("UPDATE {message} SET resent = resent - 10000000")
}

// TestSendAgainWaits: a client can send a notification again at once, but then not before ten
// seconds have passed, whatever its receiver responds. Others can be sent again meanwhile.
func TestSendAgainWaits(t *testing.T) {
	states := map[string]string{"204": "delivered", "413": "given_up", "410": "dropped", "400": "waiting"}
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			f := newFixture(t, e, &outbox.Options{Schedule: deliver.Schedule{time.Hour}}, &deliver.Options{MaxPause: time.Millisecond})
			f.respond = func(w http.ResponseWriter, r *http.Request) {
				status, _ := strconv.Atoi(r.Header.Get("Webhook-Id"))
				w.WriteHeader(status)
			}
			f.set("a", "/")
			f.run()
			sendAgain := func(id string) error { return f.box.SendAgain(t.Context(), "a", sent.Selection{ID: id}) }
			for id, state := range states {
				f.enqueue("a", "e", id)
				f.awaitAttempt("a", id)
				if err := sendAgain(id); err != nil {
					t.Errorf("%s: %v", id, err)
				}
				f.awaitAttempt("a", id)
				var tooSoon interface{ RetryAfter() time.Duration }
				if err := sendAgain(id); !errors.As(err, &tooSoon) || tooSoon.RetryAfter() <= 0 || tooSoon.RetryAfter() > 10*time.Second {
					t.Errorf("%s was sent again: %v", id, err)
				}
				if n, err := f.box.Notification(t.Context(), "a", id); err != nil || n.State != state || n.Attempts != 1 {
					t.Errorf("want %s: %+v, %v", state, n, err)
				}
			}
			f.forgetSendAgain()
			for id := range states {
				if err := sendAgain(id); err != nil {
					t.Errorf("%s: %v", id, err)
				}
				f.awaitArrivals(id, 3)
			}
		})
	}
}

// TestSendAgainOfMany: what was given up, dropped or waits for long is sent again once, for one
// entity or for all, by two processes, in several steps, and nothing else is.
func TestSendAgainOfMany(t *testing.T) {
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			var ended atomic.Int64
			f := newFixture(t, e, &outbox.Options{OnEnd: func(outbox.End) { ended.Add(1) }}, nil)
			f.set("a", "/")
			f.set("b", "/")
			now := time.Now()
			group := f.tried("a")
			var rows []shownRow
			want := make(map[string]int) // what the sends again of entity e, and then of all of today, take
			for i := range 1900 {
				r := shownRow{seq: i, client: "a", entity: []string{"e", "f"}[i%2], state: givenUp, due: now.UnixMicro() - 1e6, enqueued: now.UnixMicro() - 2e6}
				switch i / 2 % 5 {
				case 0:
					r.state = dropped
				case 1:
					r.state = delivered
				case 2:
					r.state, r.group, r.attempts, r.due = waiting, group, 1, now.Add(time.Hour).UnixMicro()
				case 3:
					r.enqueued = now.Add(-48 * time.Hour).UnixMicro()
				}
				if r.state != delivered {
					switch {
					case r.entity == "e":
						want["e"]++
					case r.enqueued > now.Add(-24*time.Hour).UnixMicro():
						want["all"]++
					}
				}
				rows = append(rows, r)
			}
			rows = append(rows, shownRow{seq: len(rows), client: "b", entity: "e", state: givenUp, due: now.UnixMicro() - 1e6, enqueued: now.UnixMicro() - 2e6})
			f.fillRows(rows)

			ofE := sent.Selection{Scope: webhookcfg.Entity("e")}
			plan, err := f.box.PlanSendAgain(t.Context(), "a", ofE)
			if err != nil || plan != (sent.Plan{Count: want["e"]}) {
				t.Errorf("plan %+v, %v, want %d", plan, err, want["e"])
			}
			if err := f.box.SendAgain(t.Context(), "a", ofE); err != nil {
				t.Fatal(err)
			}
			var tooSoon interface{ RetryAfter() time.Duration }
			if err := f.box.SendAgain(t.Context(), "a", ofE); !errors.As(err, &tooSoon) || tooSoon.RetryAfter() <= 0 {
				t.Errorf("another one: %v", err)
			}
			if plan, err = f.box.PlanSendAgain(t.Context(), "a", ofE); err != nil || plan.Last.Selection != ofE || plan.Last.Started.IsZero() || !plan.Last.Ended.IsZero() {
				t.Errorf("plan %+v, %v", plan, err)
			}
			other, err := outbox.New(f.db, e.dialect, f.sender, &outbox.Options{Prefix: f.prefix, OnEnd: func(outbox.End) { ended.Add(1) }})
			if err != nil {
				t.Fatal(err)
			}
			g := &fixture{t: t, box: other}
			f.run()
			g.run()
			f.awaitResend("a", want["e"])
			f.await(want["e"], time.Minute)

			_, err = f.db.Exec(fmt.Sprintf(`UPDATE %soutbox_again SET ended = ended - 10000000`, f.prefix)) // long ago
			if err != nil {
				t.Fatal(err)
			}
			today := sent.Selection{Scope: webhookcfg.All(), Since: now.Add(-24 * time.Hour)}
			if plan, err = f.box.PlanSendAgain(t.Context(), "a", today); err != nil || plan.Count != want["all"] || plan.IsMore {
				t.Errorf("plan %+v, %v, want %d", plan, err, want["all"])
			}
			if err := f.box.SendAgain(t.Context(), "a", today); err != nil {
				t.Fatal(err)
			}
			f.awaitResend("a", want["all"])
			f.await(want["e"]+want["all"], time.Minute)
			f.mu.Lock()
			defer f.mu.Unlock()
			for id, arrivals := range f.arrivals {
				if len(arrivals) != 1 {
					t.Errorf("%s arrived %d times", id, len(arrivals))
				}
			}
			if len(f.arrivals) != want["e"]+want["all"] {
				t.Errorf("%d arrived", len(f.arrivals))
			}
		})
	}
}

// TestPlanCounts: a plan counts up to 1,000 of all states together, and says if there are more.
func TestPlanCounts(t *testing.T) {
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			f := newFixture(t, e, nil, nil)
			now := time.Now()
			var rows []shownRow
			for i := range 1001 {
				r := shownRow{seq: i, client: "a", entity: []string{"e", "f"}[min(i/998, 1)], state: []int{waiting, givenUp, dropped}[i%3], due: now.UnixMicro() - 1e6, enqueued: now.UnixMicro() - 2e6}
				if r.state == waiting {
					r.group, r.attempts, r.due = groupOf(1000, i%2 == 0, true), 1, now.Add(time.Hour).UnixMicro()
				}
				rows = append(rows, r)
			}
			f.fillRows(rows)
			for scope, want := range map[webhookcfg.Scope]sent.Plan{
				webhookcfg.All():       {Count: 1000, IsMore: true},
				webhookcfg.Entity("e"): {Count: 998},
				webhookcfg.Entity("f"): {Count: 3},
			} {
				for _, since := range []time.Time{{}, now.Add(-time.Hour)} {
					plan, err := f.box.PlanSendAgain(t.Context(), "a", sent.Selection{Scope: scope, Since: since})
					if err != nil || plan != want {
						t.Errorf("%v since %v: %+v, %v", scope, since, plan, err)
					}
				}
			}
		})
	}
}

// TestSelectionWithoutScope: a selection that has lost its identifier selects nothing, and never
// all. One with both is ambiguous.
func TestSelectionWithoutScope(t *testing.T) {
	f := newFixture(t, engines[0], nil, nil)
	past := time.Now().UnixMicro() - 1e6
	f.fillRows([]shownRow{{seq: 1, client: "a", entity: "e", state: givenUp, due: past, enqueued: past}})
	for name, s := range map[string]sent.Selection{
		"zero": {}, "since": {Since: time.Now().Add(-time.Hour)}, "empty entity": {Scope: webhookcfg.Entity("")},
		"both": {ID: "m1", Scope: webhookcfg.All()},
	} {
		if err := f.box.SendAgain(t.Context(), "a", s); !errors.Is(err, webhookcfg.ErrInvalidArgument) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := f.box.PlanSendAgain(t.Context(), "a", s); s.ID == "" && !errors.Is(err, webhookcfg.ErrInvalidArgument) {
			t.Errorf("%s: plan: %v", name, err)
		}
	}
	if plan, err := f.box.PlanSendAgain(t.Context(), "a", sent.Selection{Scope: webhookcfg.All()}); err != nil || plan != (sent.Plan{Count: 1}) {
		t.Errorf("plan %+v, %v", plan, err)
	}
}

// TestSendAgainOfLongEntity: no notification can be for an entity that is too long, and MySQL would
// cut it to that of another one.
func TestSendAgainOfLongEntity(t *testing.T) {
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			f := newFixture(t, e, nil, nil)
			entity := strings.Repeat("e", 1024)
			past := time.Now().UnixMicro() - 1e6
			f.fillRows([]shownRow{{seq: 1, client: "a", entity: entity, state: givenUp, due: past, enqueued: past}})
			for _, tooLong := range []bool{true, false} {
				of := entity
				if tooLong {
					of += "e"
				}
				if err := f.box.SendAgain(t.Context(), "a", sent.Selection{Scope: webhookcfg.Entity(of)}); err != nil {
					t.Fatal(err)
				}
				plan, err := f.box.PlanSendAgain(t.Context(), "a", sent.Selection{Scope: webhookcfg.Entity(of)})
				if err != nil || tooLong != (plan.Count == 0) || tooLong != plan.Last.Started.IsZero() {
					t.Errorf("too long: %v: plan %+v, %v", tooLong, plan, err)
				}
			}
		})
	}
}

// TestSendAgainTakesTurns: who sends one notification again doesn't wait for others with many.
func TestSendAgainTakesTurns(t *testing.T) {
	const clients, each = 20, 1500
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			f := newFixture(t, e, nil, nil)
			for i := range clients {
				f.fill(fmt.Sprint("big", i), each, "n")
			}
			f.fill("small", 1, "n")
			past := time.Now().UnixMicro() - 1e6
			f.exec("UPDATE {message} SET state = ", givenUp, ", due = ", past, ", enqueued = ", past)
			for i := range clients {
				if err := f.box.SendAgain(t.Context(), fmt.Sprint("big", i), sent.Selection{Scope: webhookcfg.All()}); err != nil {
					t.Fatal(err)
				}
			}
			if err := f.box.SendAgain(t.Context(), "small", sent.Selection{Scope: webhookcfg.All()}); err != nil {
				t.Fatal(err)
			}
			f.run()
			ended := make(map[string]time.Time)
			for client, n := range map[string]int{"small": 1, "big0": each} {
				f.awaitResend(client, n)
				plan, err := f.box.PlanSendAgain(t.Context(), client, sent.Selection{Scope: webhookcfg.All()})
				if err != nil {
					t.Fatal(err)
				}
				ended[client] = plan.Last.Ended
			}
			if !ended["small"].Before(ended["big0"]) {
				t.Errorf("the others went first: %v", ended)
			}
		})
	}
}

// TestSendAgainFails: nobody waits for a client whose notifications can't be sent again, and the
// log names it.
func TestSendAgainFails(t *testing.T) {
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			f := newFixture(t, e, nil, nil)
			db, _ := f.wired(func(c call) (before, after error) {
				if strings.HasPrefix(c.kind, "UPDATE again SET steps") && slices.ContainsFunc(c.args, func(v driver.NamedValue) bool {
					client, _ := v.Value.([]byte)
					return string(client) == "a"
				}) {
					return errors.New("the disk is broken"), nil
				}
				return nil, nil
			})
			log := make(logged, 100)
			box, err := outbox.New(db, e.dialect, f.sender, &outbox.Options{Prefix: f.prefix, Logger: slog.New(slog.NewTextHandler(log, nil))})
			if err != nil {
				t.Fatal(err)
			}
			past := time.Now().UnixMicro() - 1e6
			for i, client := range []string{"a", "b"} {
				f.set(client, "/")
				f.fillRows([]shownRow{{seq: i, client: client, entity: "e", state: givenUp, due: past, enqueued: past}})
				if err := box.SendAgain(t.Context(), client, sent.Selection{Scope: webhookcfg.All()}); err != nil {
					t.Fatal(err)
				}
			}
			f.runBox(box)
			f.awaitResend("b", 1)
			f.awaitArrivals("m1", 1)
			log.await(t, `client \"a\": the disk is broken`)
		})
	}
}

// logged are the records of a log.
type logged chan string

func (l logged) Write(record []byte) (int, error) {
	l <- string(record)
	return len(record), nil
}

// await waits for a record with a text.
func (l logged) await(t *testing.T, text string) {
	t.Helper()
	deadline := time.After(10 * time.Second)
	for {
		select {
		case record := <-l:
			if strings.Contains(record, text) {
				return
			}
		case <-deadline:
			t.Fatalf("logged nothing with %s", text)
		}
	}
}

// TestEraseDuringSendAgain: what a client sends again while it's erased is erased, too.
func TestEraseDuringSendAgain(t *testing.T) {
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			f := newFixture(t, e, nil, nil)
			hung := make(chan struct{})
			f.respond = func(http.ResponseWriter, *http.Request) { <-hung }
			defer close(hung)
			f.set("a", "/")
			past := time.Now().UnixMicro() - 1e6
			var rows []shownRow
			for i := range 100 {
				rows = append(rows, shownRow{seq: i, client: "a", entity: "e", state: []int{delivered, givenUp}[i%2], due: past, enqueued: past})
			}
			f.fillRows(rows)
			f.run()
			var once sync.Once
			db, _ := f.wired(func(c call) (before, after error) {
				if strings.HasPrefix(c.kind, "DELETE FROM message") {
					once.Do(func() { // those that are waiting are behind it
						if err := f.box.SendAgain(t.Context(), "a", sent.Selection{Scope: webhookcfg.All()}); err != nil {
							t.Error(err)
						}
						f.awaitResend("a", 50)
					})
				}
				return nil, nil
			})
			if _, err := f.peer(e, db, outbox.Options{}).Erase(t.Context(), "a"); err != nil {
				t.Fatal(err)
			}
			page, err := f.box.Notifications(t.Context(), "a", sent.Query{Limit: 1000})
			if err != nil || len(page.Notifications) > 0 {
				t.Errorf("%d notifications are left: %v", len(page.Notifications), err)
			}
			plan, err := f.box.PlanSendAgain(t.Context(), "a", sent.Selection{Scope: webhookcfg.All()})
			if err != nil || plan != (sent.Plan{}) {
				t.Errorf("plan %+v, %v", plan, err)
			}
		})
	}
}

// TestEraseCounts: a notification that an attempt takes to another state, after Erase has found it and
// before it deletes it, counts once.
func TestEraseCounts(t *testing.T) {
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			f := newFixture(t, e, nil, nil)
			for i := range 40 {
				f.enqueue("a", fmt.Sprint("e", i), fmt.Sprint("m", i))
			}
			var once sync.Once
			db, _ := f.wired(func(c call) (before, after error) {
				if strings.HasPrefix(c.kind, "DELETE FROM message") {
					once.Do(func() { f.exec("UPDATE {message} SET state = ", givenUp, " WHERE seq % 2 = 0") })
				}
				return nil, nil
			})
			if n, err := f.peer(e, db, outbox.Options{}).Erase(t.Context(), "a"); n != 40 || err != nil {
				t.Errorf("erased %d of 40: %v", n, err)
			}
		})
	}
}

// TestEraseHeld: erasing a client that a process has leaves nothing in the tables or in the process.
// Only what is under way is sent. A process that is dead doesn't keep anything either.
func TestEraseHeld(t *testing.T) {
	t.Parallel()
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, e, nil, nil)
			hung := make(chan struct{})
			release := sync.OnceFunc(func() { close(hung) })
			t.Cleanup(release)
			f.respond = func(http.ResponseWriter, *http.Request) { <-hung }
			f.set("a", "/")
			f.set("b", "/")
			f.run()
			bytes := func(client string) string {
				return fmt.Sprintf("CAST('%s' AS %s)", client, map[string]string{"SQLite": "BLOB", "PostgreSQL": "bytea", "MariaDB": "BINARY"}[e.name])
			}
			left := func(client string) (all string) {
				for _, table := range []string{"message", "line", "pause", "mark", "again"} {
					var n int
					if err := f.db.QueryRow("SELECT COUNT(*) FROM " + f.prefix + "outbox_" + table + " WHERE client = " + bytes(client)).Scan(&n); err != nil {
						t.Fatal(err)
					}
					if n > 0 {
						all += fmt.Sprint(" ", n, " ", table)
					}
				}
				return all
			}
			remember := func(client string) { // a pause and a mark
				f.exec("INSERT INTO ", f.prefix, "outbox_pause (client, entity, setting, failures, ends, reason, saved, state) VALUES (", bytes(client), ", ", bytes("e"), ", 1, 5, 0, 'status', 0, '{}')")
				f.exec("INSERT INTO ", f.prefix, "outbox_mark (client, entity, n) VALUES (", bytes(client), ", ", bytes("e"), ", 1)")
			}
			for i := range 40 {
				f.enqueue("a", fmt.Sprint("e", i), fmt.Sprint("m", i))
			}
			f.await(4, 10*time.Second)
			remember("a")
			if n, err := f.peer(e, f.db, outbox.Options{}).Erase(t.Context(), "a"); n != 40 || err != nil || left("a") != "" {
				t.Errorf("erased %d of 40, and left%s: %v", n, left("a"), err)
			}
			release()
			f.enqueue("b", "e", "later")
			f.await(5, 10*time.Second)
			f.awaitEnds(outbox.Delivered, 1)
			time.Sleep(time.Second)
			if got := f.arrived(); got != 5 {
				t.Errorf("%d arrived, want 5", got)
			}
			f.enqueue("a", "e", "new") // of another client with the same identifier
			f.await(6, 10*time.Second)

			f.exec("INSERT INTO ", f.prefix, "outbox_line (client, owner, due) VALUES (", bytes("c"), ", 7, 0)")
			remember("c")
			if n, err := f.box.Erase(t.Context(), "c"); n != 0 || err != nil || left("c") != "" {
				t.Errorf("erased %d of none, and left%s of a dead process: %v", n, left("c"), err)
			}
		})
	}
}

// TestSendAgainWaitsForPause: what is sent again waits for the end of a pause like anything else,
// and the client's other receivers get theirs meanwhile. Nobody else can send it again.
func TestSendAgainWaitsForPause(t *testing.T) {
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			f := newFixture(t, e, &outbox.Options{Schedule: deliver.Schedule{time.Hour}}, nil)
			f.respond = func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/paused" {
					w.Header().Set("Retry-After", "1800")
					w.WriteHeader(http.StatusServiceUnavailable)
				}
			}
			f.set("a", "/paused")
			f.apply(webhookcfg.SetChange("a", webhookcfg.Entity("other"), egress.NewURL(strings.Replace(f.server.URL, "127.0.0.1", "127.0.0.2", 1)+"/")))
			f.run()
			f.enqueue("a", "e", "m1")
			f.awaitAttempt("a", "m1")
			if err := f.box.SendAgain(t.Context(), "b", sent.Selection{ID: "m1"}); !errors.Is(err, sent.ErrNotFound) {
				t.Errorf("another client: %v", err)
			}
			if err := f.box.SendAgain(t.Context(), "a", sent.Selection{ID: "m1"}); err != nil {
				t.Fatal(err)
			}
			f.enqueue("a", "other", "m2")
			f.awaitArrivals("m2", 1)
			if err := f.box.SendAgain(t.Context(), "a", sent.Selection{Scope: webhookcfg.All()}); err != nil {
				t.Fatal(err)
			}
			f.awaitResend("a", 0) // it's due already
			f.enqueue("a", "other", "m3")
			f.awaitArrivals("m3", 1)
			f.mu.Lock()
			if n := len(f.arrivals["m1"]); n != 1 {
				t.Errorf("m1 arrived %d times", n)
			}
			f.mu.Unlock()
			f.set("a", "/") // ends the pause
			f.box.Changed("a", webhookcfg.All())
			f.awaitArrivals("m1", 2)
		})
	}
}

// awaitAttempt waits until a notification has had an attempt since it was enqueued or sent again.
func (f *fixture) awaitAttempt(client, id string) {
	f.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		n, err := f.box.Notification(f.t.Context(), client, id)
		if err != nil {
			f.t.Fatal(err)
		}
		if n.Attempts > 0 {
			return
		}
		if time.Now().After(deadline) {
			f.t.Fatalf("%+v", n)
		}
	}
}

// awaitResend waits until a send again of many has ended.
func (f *fixture) awaitResend(client string, want int) {
	f.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		plan, err := f.box.PlanSendAgain(f.t.Context(), client, sent.Selection{Scope: webhookcfg.All()})
		if err != nil {
			f.t.Fatal(err)
		}
		if !plan.Last.Ended.IsZero() {
			if plan.Last.Count != want {
				f.t.Errorf("sent %d again, want %d", plan.Last.Count, want)
			}
			return
		}
		if time.Now().After(deadline) {
			f.t.Fatalf("it hasn't ended: %+v", plan)
		}
	}
}

// TestKeep: each client keeps as many notifications as the options say, the last ones, and none
// for longer.
func TestKeep(t *testing.T) {
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			f := newFixture(t, e, &outbox.Options{KeepDelivered: outbox.Keep{For: time.Hour, PerClient: 3}}, nil)
			now := time.Now()
			var rows []shownRow
			for i := range 12 {
				state := delivered + i%3
				rows = append(rows, shownRow{seq: i, client: "a", entity: "e", state: state, due: now.Add(-time.Duration(i) * time.Minute).UnixMicro(), enqueued: now.Add(-2 * time.Hour).UnixMicro()})
			}
			rows = append(rows, shownRow{seq: 12, client: "b", entity: "e", state: delivered, due: now.Add(-2 * time.Hour).UnixMicro(), enqueued: now.Add(-2 * time.Hour).UnixMicro()})
			f.fillRows(rows)
			f.run()
			want := []string{"m0", "m1", "m10", "m11", "m2", "m3", "m4", "m5", "m6", "m7", "m8"}
			var left []string
			for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline) && !slices.Equal(left, want); time.Sleep(50 * time.Millisecond) {
				left = nil
				for _, client := range []string{"a", "b"} {
					page, err := f.box.Notifications(t.Context(), client, sent.Query{Limit: 100})
					if err != nil {
						t.Fatal(err)
					}
					for _, n := range page.Notifications {
						left = append(left, n.ID)
					}
				}
				slices.Sort(left)
			}
			if !slices.Equal(left, want) {
				t.Errorf("left: %q", left)
			}
		})
	}
}

// recorded is a driver that records the statements of a database.
type recorded struct {
	driver.Driver
	mu         sync.Mutex
	statements []driverStatement
}

type driverStatement struct {
	text string
	args []any
}

func (d *recorded) take() []driverStatement {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := d.statements
	d.statements = nil
	return all
}

// Open implements [driver.Driver].
func (d *recorded) Open(dsn string) (driver.Conn, error) {
	conn, err := d.Driver.Open(dsn)
	return recordedConn{conn, d}, err
}

type recordedConn struct {
	driver.Conn
	d *recorded
}

// Prepare implements [driver.Conn].
func (c recordedConn) Prepare(text string) (driver.Stmt, error) {
	s, err := c.Conn.Prepare(text)
	return recordedStmt{s, text, c.d}, err
}

// BeginTx implements [driver.ConnBeginTx].
func (c recordedConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	return c.Conn.(driver.ConnBeginTx).BeginTx(ctx, opts)
}

type recordedStmt struct {
	driver.Stmt
	text string
	d    *recorded
}

func (s recordedStmt) record(values []driver.NamedValue) {
	var args []any
	for _, v := range values {
		args = append(args, v.Value)
	}
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	s.d.statements = append(s.d.statements, driverStatement{s.text, args})
}

// QueryContext implements [driver.StmtQueryContext].
func (s recordedStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	s.record(args)
	return s.Stmt.(driver.StmtQueryContext).QueryContext(ctx, args)
}

// ExecContext implements [driver.StmtExecContext].
func (s recordedStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	s.record(args)
	return s.Stmt.(driver.StmtExecContext).ExecContext(ctx, args)
}

var recorders = make(map[string]*recorded)

// TestViewUsesIndexes: no statement of the view reads a table whole or sorts.
func TestViewUsesIndexes(t *testing.T) {
	bad := map[string]*regexp.Regexp{
		"SQLite":     regexp.MustCompile(`SCAN t\d|SCAN [a-z]+_outbox|USE TEMP B-TREE`),
		"PostgreSQL": regexp.MustCompile(`Seq Scan|Sort`),
		"MariaDB":    regexp.MustCompile(`\b(ALL|index)\b.*outbox_(message|pause)|filesort|temporary`),
	}
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			f := newFixture(t, e, nil, nil)
			r := recorders[e.name]
			if r == nil {
				r = &recorded{Driver: f.db.Driver()}
				recorders[e.name] = r
				sql.Register("recorded "+e.name, r)
			}
			f.fillRows(randomRows(1000))
			f.double(7)
			var pauses []string
			for i := range 1000 {
				pauses = append(pauses, fmt.Sprintf("(%s, %s, 1, 5, 0, 'status', 0, '{}')", e.bytes("a"), e.bytes(fmt.Sprint("e", i))))
			}
			f.exec("INSERT INTO ", f.prefix, "outbox_pause (client, entity, setting, failures, ends, reason, saved, state) VALUES ", strings.Join(pauses, ", "))
			f.analyze(e, "outbox_message", "outbox_pause")
			box, err := outbox.New(open(t, "recorded "+e.name, f.dsn), e.dialect, nil, &outbox.Options{Prefix: f.prefix})
			if err != nil {
				t.Fatal(err)
			}
			ctx := t.Context()
			r.take()
			for _, entity := range []string{"", "e"} {
				for _, state := range []string{"", "waiting", "delivered", "given_up", "dropped"} {
					q := sent.Query{Entity: entity, State: state, Limit: 20}
					page, err := box.Notifications(ctx, "a", q)
					if err != nil {
						t.Fatal(err)
					}
					if q.After = page.Next; q.After != "" {
						if _, err := box.Notifications(ctx, "a", q); err != nil {
							t.Fatal(err)
						}
					}
				}
			}
			_, _ = box.Notification(ctx, "a", "m1")
			for _, scope := range []webhookcfg.Scope{webhookcfg.All(), webhookcfg.Entity("e")} {
				if _, err := box.PlanSendAgain(ctx, "a", sent.Selection{Scope: scope, Since: time.Now().Add(-time.Hour)}); err != nil {
					t.Fatal(err)
				}
			}
			statements := r.take()
			if len(statements) < 20 {
				t.Fatalf("only %d statements", len(statements))
			}
			for _, s := range statements {
				if !strings.Contains(s.text, "outbox_message") {
					continue
				}
				plan := explain(t, f.db, e.name, s)
				if strings.Contains(s.text, "COUNT") || strings.Contains(s.text, "UNION") { // sort as many as they return
					plan = regexp.MustCompile("Sort|USE TEMP B-TREE|filesort|<(derived|union).*").ReplaceAllString(plan, "")
				}
				if bad[e.name].MatchString(plan) {
					t.Errorf("%s\n%s", s.text, plan)
				}
			}
		})
	}
}

// double copies all rows, a number of times, with other identifiers and numbers.
func (f *fixture) double(times int) {
	f.t.Helper()
	for i := range times {
		copyAll := fmt.Sprintf(`INSERT INTO %[1]soutbox_message (client, entity, id, state, grp, due, enqueued, attempts, status, reason, content_type, body)
SELECT client, entity, CONCAT(id, '_%[2]d'), state, grp, CASE WHEN due > 0 THEN due + %[2]d ELSE 0 END, enqueued, attempts, status, reason, content_type, body FROM %[1]soutbox_message`, f.prefix, i)
		if f.isSQLite {
			copyAll = strings.Replace(copyAll, "CONCAT(id, ", "(id || ", 1)
		}
		if _, err := f.db.Exec(copyAll); err != nil {
			f.t.Fatal(err)
		}
	}
}

// explain returns the plan of a statement.
func explain(t *testing.T, db *sql.DB, engine string, s driverStatement) string {
	t.Helper()
	verb := "EXPLAIN "
	if engine == "SQLite" {
		verb = "EXPLAIN QUERY PLAN "
	}
	rows, err := db.Query(verb+s.text, s.args...)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	var plan strings.Builder
	for rows.Next() {
		values := make([]sql.NullString, len(columns))
		fields := make([]any, len(columns))
		for i := range values {
			fields[i] = &values[i]
		}
		if err := rows.Scan(fields...); err != nil {
			t.Fatal(err)
		}
		for _, v := range values {
			plan.WriteString(v.String + " ")
		}
		plan.WriteString("\n")
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return plan.String()
}
