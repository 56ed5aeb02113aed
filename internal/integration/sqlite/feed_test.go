package sqlite_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"example.com/go-webhookcfg/store/cache"
)

// TestFeedResets checks that you get a Reset for an unknown cursor, a cursor of another
// database and a cursor from the future. An idle database gives no changes.
func TestFeedResets(t *testing.T) {
	path := newPath(t)
	s, other, db := open(t, path), open(t, newPath(t)), openDB(t, path, unsynced)
	for n := range 3 {
		if err := errors.Join(s.Apply(t.Context(), nth("c", n+1)), other.Apply(t.Context(), nth("c", n+1))); err != nil {
			t.Fatal(err)
		}
	}
	poll := func(f cache.Feed, since string) cache.Changes {
		t.Helper()
		changes, err := f.Changes(t.Context(), since)
		if err != nil {
			t.Fatal(err)
		}
		return changes
	}
	current := poll(s, "").Next
	identity, _, _ := strings.Cut(current, "/")
	for _, since := range []string{"", "nonsense", poll(other, "").Next, identity + "/99/"} {
		if changes := poll(s, since); !changes.Reset || changes.Next != current || len(changes.Clients) > 0 {
			t.Errorf("%q gives %v", since, changes)
		}
	}
	if changes := poll(s, current); changes.Reset || len(changes.Clients) > 0 || changes.Next != current {
		t.Errorf("idle: %v", changes)
	}
	if changes := poll(s, identity+"/1/"); changes.Reset || !slices.Equal(changes.Clients, []string{"c"}) {
		t.Errorf("from the beginning: %v", changes)
	}
	const many = `INSERT INTO wh_client (id, gen, swept, url, since, mark, vacated, chg)
WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 4097)
SELECT CAST(i AS BLOB), 0, 0, x'', 0, i, 0, i + 100 FROM n`
	if _, err := db.ExecContext(t.Context(), many); err != nil {
		t.Fatal(err)
	}
	if changes := poll(s, current); !changes.Reset || len(changes.Clients) > 0 {
		t.Errorf("after many: reset %v, %d clients", changes.Reset, len(changes.Clients))
	}
}

// TestFeedAfterALostTable: once a lost table was created again, as the error says, copies of the webhooks start
// over.
func TestFeedAfterALostTable(t *testing.T) {
	path := newPath(t)
	s, db := open(t, path), openDB(t, path, unsynced)
	for _, table := range []string{"wh_override", "wh_client", "wh_delivery"} {
		before, err := s.Changes(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		for _, statement := range []string{"DROP VIEW wh_webhook", "DROP TABLE " + table, "UPDATE wh_schema SET version = 0"} {
			if _, err := db.ExecContext(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		if after, err := s.Changes(t.Context(), before.Next); err != nil || !after.Reset {
			t.Errorf("%s: %+v, %v; want a reset", table, after, err)
		}
	}
}
