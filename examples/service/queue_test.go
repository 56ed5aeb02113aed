package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// waiting returns an idle service over SQLite, in whose queue n notifications of e1, e2, …
// of each client wait.
func waiting(t *testing.T, n int, clients ...string) *service {
	t.Helper()
	s := idle(t, []string{"-store", "sqlite:" + filepath.Join(t.TempDir(), "service.db"), "-backlog", "3"})
	if err := s.database.migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
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

// TestShards: a client's notifications are in its shard up to the backlog, and then in the
// overflow of that shard, until the backlog is shorter. Another client's are in its own.
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

// TestForget: each client keeps the latest of what was given up.
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

// TestReplayOverflows: what is replayed stands in front of nobody.
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
	for _, statement := range []string{countWaiting} {
		rows, err := s.database.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+statement, "acme", 1)
		if err != nil {
			t.Fatal(err)
		}
		var plan string
		for rows.Next() {
			var id, parent, unused int
			var detail string
			if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
				t.Fatal(err)
			}
			plan += detail + "\n"
		}
		if err := rows.Err(); err != nil || !strings.Contains(plan, "notification_client") {
			t.Errorf("%s is done by\n%s%v", statement, plan, err)
		}
	}
}
