package sqlite_test

import (
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"

	"example.com/go-webhookcfg/internal/integration/engine/sqltest"
	"example.com/go-webhookcfg/store/sqlstore"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// TestLimit: concurrent changes of several processes never exceed the limit of the trigger.
func TestLimit(t *testing.T) {
	path := newPath(t)
	db := openDB(t, path, unsynced)
	stores := []*sqlstore.Store{open(t, path), open(t, path), newStore(t, db)}
	sqltest.Limit(t, db, "wh_", stores, trigger)
}

var trigger = sqltest.Trigger{File: "sqlite.sql", Refused: func(err error) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	return ok && e.Code() == sqlite3.SQLITE_CONSTRAINT_TRIGGER
}}

// TestLimitOfPlan: each client can have a limit of its own, as the file says, and one without gets the default.
func TestLimitOfPlan(t *testing.T) {
	path := newPath(t)
	sqltest.LimitOfPlan(t, openDB(t, path, unsynced), "wh_", open(t, path), trigger)
}

// TestLimitReads: the query of the trigger reads no rows of entities that are off, since it only
// searches an index without them.
func TestLimitReads(t *testing.T) {
	path := newPath(t)
	db := openDB(t, path, unsynced)
	open(t, path)
	text, err := os.ReadFile("../../../store/sqlstore/limit/sqlite.sql")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), string(text)); err != nil {
		t.Fatal(err)
	}
	query := regexp.MustCompile(`(?s)SELECT 1.*?LIMIT \d+`).FindString(string(text))
	rows, err := db.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+regexp.MustCompile(`NEW\.\w+`).ReplaceAllString(query, "?"), []byte("a"), 1, []byte("e"))
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var steps []string
	for rows.Next() {
		var id, parent, unused int
		var step string
		if err := rows.Scan(&id, &parent, &unused, &step); err != nil {
			t.Fatal(err)
		}
		steps = append(steps, step)
	}
	const want = "SEARCH o USING INDEX wh_override_url (client=? AND gen=?)"
	if got := strings.Join(steps, ", "); rows.Err() != nil || got != want {
		t.Errorf("plan %q, %v; want %q", got, rows.Err(), want)
	}
}
