package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
)

// waiting returns an idle service over SQLite. In its queue, n notifications of each client
// wait, for e1, e2 and so on.
func waiting(t *testing.T, n int, clients ...string) *service {
	t.Helper()
	s := idle(t, []string{"-store", newStore(t), "-backlog", "3"})
	for i := range n {
		for _, client := range clients {
			if _, err := s.queue.update(t.Context(), module{client, fmt.Sprint("e", i+1), "on"}, s.cfg.backlog); err != nil {
				t.Fatal(err)
			}
		}
	}
	return s
}

func (s *service) exec(t *testing.T, statement string) {
	t.Helper()
	if _, err := s.database.ExecContext(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

// list returns the texts that a statement selects.
func (s *service) list(t *testing.T, statement string) (texts []string) {
	t.Helper()
	rows, err := s.database.QueryContext(t.Context(), statement)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			t.Fatal(err)
		}
		texts = append(texts, text)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return texts
}

// TestShards: a client's notifications go to its shard up to the backlog, and then to the
// shard's overflow, until the backlog is shorter. Another client's go to its own shard.
func TestShards(t *testing.T) {
	s := waiting(t, 5, "acme", "other")
	used := func(client string) []string {
		return s.list(t, "SELECT queue FROM river_job WHERE args ->> 'client' = '"+client+"' ORDER BY id")
	}
	for _, client := range []string{"acme", "other"} {
		shard, overflow := queueOf(client, 0, 1), queueOf(client, 1, 1)
		if want := []string{shard, shard, shard, overflow, overflow}; !slices.Equal(used(client), want) {
			t.Errorf("%s: %v, want %v", client, used(client), want)
		}
		for _, name := range []string{shard, overflow} {
			if _, ok := queues(1)[name]; !ok {
				t.Errorf("no worker takes from %s", name)
			}
		}
	}
	if queueOf("acme", 0, 1) == queueOf("other", 0, 1) {
		t.Error("the clients of this test share a shard")
	}
}

// TestMakeDue: the waiting notifications of a scope become due, and nothing else changes.
func TestMakeDue(t *testing.T) {
	const (
		states = `UPDATE river_job SET
	state = CASE id % 3 WHEN 0 THEN 'available' WHEN 1 THEN 'scheduled' ELSE 'retryable' END,
	scheduled_at = datetime('now', '+1 hour')`
		due  = `SELECT args ->> 'client' || ' ' || (args ->> 'entity') FROM river_job WHERE state = 'available' AND scheduled_at <= datetime('now', 'subsec') ORDER BY id`
		done = `UPDATE river_job SET state = 'running' WHERE args ->> 'entity' = 'e3'`
	)
	for _, tt := range []struct {
		scope scope
		want  []string
	}{
		{scope{"acme", ""}, []string{"acme e1", "acme e2"}},
		{scope{"acme", "e2"}, []string{"acme e2"}},
		{scope{"acme", "e3"}, nil},
		{scope{"nobody", ""}, nil},
	} {
		s := waiting(t, 3, "acme", "other")
		s.exec(t, states)
		s.exec(t, done)
		if err := s.database.makeDue(t.Context(), recall{tt.scope, math.MaxInt}); err != nil {
			t.Fatal(err)
		}
		if got := s.list(t, due); !slices.Equal(got, tt.want) {
			t.Errorf("%v: %v are due, want %v", tt.scope, got, tt.want)
		}
	}
}

// TestCounts: counting stops at a bound.
func TestCounts(t *testing.T) {
	s := waiting(t, 1, "acme")
	s.fill(t, mostCounted)
	if got, err := s.database.counts(t.Context()); err != nil || got != (counts{Waiting: mostCounted}) {
		t.Errorf("%+v, %v", got, err)
	}
}

// fill copies the only job until so many more wait.
func (s *service) fill(t *testing.T, n int) {
	t.Helper()
	s.exec(t, fmt.Sprintf(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
INSERT INTO river_job (args, kind, max_attempts, queue, state)
SELECT args, kind, max_attempts, queue, iif(i %% 2, 'scheduled', 'available') FROM n, river_job`, n))
}

// TestMakeDueInBatches: more jobs than fit a batch become due.
func TestMakeDueInBatches(t *testing.T) {
	s := waiting(t, 1, "acme")
	s.fill(t, 2499)
	s.exec(t, "UPDATE river_job SET scheduled_at = datetime('now', '+1 hour')")
	const due = "SELECT count(*) FROM river_job WHERE scheduled_at <= datetime('now', 'subsec')"
	for _, step := range []struct {
		most int
		want string
	}{{soon, "100"}, {1200, "1300"}, {math.MaxInt, "2500"}} {
		if err := s.database.makeDue(t.Context(), recall{scope{client: "acme"}, step.most}); err != nil {
			t.Fatal(err)
		}
		if got := s.list(t, due)[0]; got != step.want {
			t.Errorf("%s of 2500 jobs are due, want %s", got, step.want)
		}
	}
}

// TestRecall: after a successful set or a recovery, some waiting notifications become due at
// once. The others follow when nobody defers them for the old webhook any more.
func TestRecall(t *testing.T) {
	const maxStale = 2 * time.Second
	set := webhookcfg.Event{Operation: "set", Client: "acme", Scope: webhookcfg.Entity("e1")}
	refused, all, unset := set, set, set
	refused.Code, all.Scope, unset.Operation = "webhook_unreachable", webhookcfg.All(), "unset"
	for name, tt := range map[string]struct {
		happens func(*service)
		want    []scope
	}{
		"set":       {func(s *service) { s.onEvent(t.Context(), set) }, []scope{{"acme", "e1"}}},
		"set all":   {func(s *service) { s.onEvent(t.Context(), all) }, []scope{{"acme", ""}}},
		"refused":   {func(s *service) { s.onEvent(t.Context(), refused) }, nil},
		"unset":     {func(s *service) { s.onEvent(t.Context(), unset) }, nil},
		"recovered": {func(s *service) { s.onRecovered(t.Context(), "acme", "receiver.example:443") }, []scope{{"acme", ""}}},
		"too many": {func(s *service) {
			for range 3 * maxRecalls {
				s.onRecovered(t.Context(), "acme", "receiver.example:443")
			}
		}, slices.Repeat([]scope{{"acme", ""}}, maxRecalls)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &service{cfg: config{maxStale: maxStale}, recalls: make(chan recall, maxRecalls)}
				tt.happens(s)
				for _, most := range []int{soon, math.MaxInt} {
					var got []scope
					for len(s.recalls) > 0 {
						r := <-s.recalls
						if got = append(got, r.scope); r.most != most {
							t.Errorf("it recalls %d, want %d", r.most, most)
						}
					}
					if !slices.Equal(got, tt.want) {
						t.Errorf("it recalls %d scopes, want %d: %v", len(got), len(tt.want), tt.want)
					}
					time.Sleep(maxStale + time.Second)
					synctest.Wait()
				}
				if len(s.recalls) > 0 {
					t.Error("it recalls a third time")
				}
			})
		})
	}
}

// TestForget: each client keeps its latest given-up notifications.
func TestForget(t *testing.T) {
	s := waiting(t, 4, "acme", "other")
	s.exec(t, `UPDATE river_job SET state = 'cancelled', finalized_at = CURRENT_TIMESTAMP
WHERE args ->> 'client' = 'acme' OR args ->> 'entity' = 'e1'`)
	if err := s.database.forget(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	got := s.list(t, "SELECT args ->> 'client' || ' ' || (args ->> 'entity') FROM river_job ORDER BY id")
	if want := []string{"other e1", "other e2", "acme e3", "other e3", "acme e4", "other e4"}; !slices.Equal(got, want) {
		t.Errorf("the queue has %v, want %v", got, want)
	}
}

// TestReplayOverflows: nobody waits behind a replay.
func TestReplayOverflows(t *testing.T) {
	s := waiting(t, 1, "acme")
	s.exec(t, "UPDATE river_job SET state = 'cancelled', finalized_at = CURRENT_TIMESTAMP")
	if err := s.listGivenUp(t.Context(), selection{}, true, t.Output()); err != nil {
		t.Fatal(err)
	}
	if got := s.list(t, "SELECT queue FROM river_job"); got[0] != queueOf("acme", 1, 1) {
		t.Errorf("it is in %v", got)
	}
}

// TestClientIndex: a client's notifications are found without reading everybody's.
func TestClientIndex(t *testing.T) {
	s := waiting(t, 0)
	for _, statement := range []string{countWaiting, findWaiting} {
		rows, err := s.database.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+statement, "acme", 1, 1)
		if err != nil {
			t.Fatal(err)
		}
		var plan strings.Builder
		for rows.Next() {
			var id, parent, unused int
			var detail string
			if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
				t.Fatal(err)
			}
			plan.WriteString(detail + "\n")
		}
		if err := rows.Err(); err != nil || !strings.Contains(plan.String(), "notification_client") {
			t.Errorf("%s is done by\n%s%v", statement, plan.String(), err)
		}
	}
}
