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
