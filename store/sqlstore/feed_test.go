package sqlstore_test

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"example.com/go-webhookcfg/store/cache"
	"example.com/go-webhookcfg/store/sqlstore"
)

// TestFeedUnsupported: where the database numbers no changes, Changes sends nothing.
func TestFeedUnsupported(t *testing.T) {
	s, f := openFake(t, sqlstore.MySQL(), nil, failing("nothing", nil, 0))
	if _, err := s.Changes(t.Context(), ""); !errors.Is(err, errors.ErrUnsupported) || f.count("") > 0 {
		t.Errorf("%v; sent %s", err, f.shape())
	}
}

// TestCursor checks the result of Changes for each kind of cursor.
func TestCursor(t *testing.T) {
	row := func(identity, oldest, newest string, client any) []driver.Value {
		return []driver.Value{identity, oldest, newest, client}
	}
	two := resultRows{row("db", "20", "30", []byte("a")), row("db", "20", "30", []byte("b"))}
	none := resultRows{row("db", "20", "12", nil)}
	var many resultRows
	for n := range 4097 {
		many = append(many, row("db", "20", "30", fmt.Append(nil, n)))
	}
	for _, tt := range []struct {
		name, since string
		rows        resultRows
		param       string
		want        cache.Changes
	}{
		{"first", "", none, "9223372036854775807", cache.Changes{Reset: true, Next: "db/13"}},
		{"nothing", "db/13", none, "13", cache.Changes{Next: "db/13"}},
		{"two", "db/13", two, "13", cache.Changes{Clients: []string{"a", "b"}, Next: "db/20"}},
		{"too many", "db/13", many, "13", cache.Changes{Reset: true, Next: "db/20"}},
		{"just not too many", "db/13", many[1:2], "13", cache.Changes{Clients: []string{"1"}, Next: "db/20"}},
		{"of another database", "other/13", two, "13", cache.Changes{Reset: true, Next: "db/20"}},
		{"of the future", "db/21", two, "21", cache.Changes{Reset: true, Next: "db/20"}},
		{"without an identity", "/13", two, "9223372036854775807", cache.Changes{Reset: true, Next: "db/20"}},
		{"without a number", "db", two, "9223372036854775807", cache.Changes{Reset: true, Next: "db/20"}},
		{"negative", "db/-1", two, "9223372036854775807", cache.Changes{Reset: true, Next: "db/20"}},
		{"no cursor at all", "'; DROP", two, "9223372036854775807", cache.Changes{Reset: true, Next: "db/20"}},
	} {
		s, _ := openFake(t, sqlstore.PostgreSQL(), nil, func(call string, args []driver.NamedValue) (resultRows, error) {
			if strings.HasPrefix(call, "SELECT") && args[0].Value != tt.param {
				t.Errorf("%s: parameter %v, want %s", tt.name, args[0].Value, tt.param)
			}
			return tt.rows, nil
		})
		got, err := s.Changes(t.Context(), tt.since)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", tt.name, diff)
		}
	}
}

// TestHalfMigratedFeed: without an identity in the database, Changes returns an error.
func TestHalfMigratedFeed(t *testing.T) {
	for _, rows := range []resultRows{nil, {{nil, "20", "30", nil}}} {
		s, _ := openFake(t, sqlstore.SQLite(), nil, func(string, []driver.NamedValue) (resultRows, error) { return rows, nil })
		if changes, err := s.Changes(t.Context(), ""); err == nil {
			t.Errorf("got %v", changes)
		}
	}
}

// TestVersions: one query reads many clients, few query texts serve all numbers of
// clients, and the versions are in the order of the clients.
func TestVersions(t *testing.T) {
	texts := make(map[string]int)
	s, _ := openFake(t, sqlstore.MySQL(), nil, func(call string, args []driver.NamedValue) (resultRows, error) {
		if call == "connect" {
			return nil, nil
		}
		texts[call]++
		seen := make(map[string]bool)
		var rows resultRows
		for _, arg := range args {
			if id := string(arg.Value.([]byte)); !seen[id] && id != "unknown" {
				seen[id] = true
				rows = append([][]driver.Value{{[]byte(id), int64(len(id))}}, rows...)
			}
		}
		return rows, nil
	})
	var clients []string
	for n := range 600 {
		clients = append(clients, fmt.Sprint("client-", strings.Repeat("x", n%7), n))
	}
	clients = append(clients, "unknown")
	for size := range 90 {
		if _, err := s.Versions(t.Context(), clients[:size]); err != nil {
			t.Fatal(err)
		}
	}
	if len(texts) != 8 { // 1, 2, 4, … 128 names
		t.Errorf("%d texts", len(texts))
	}
	clear(texts)
	got, err := s.Versions(t.Context(), clients)
	if err != nil || len(got) != len(clients) {
		t.Fatalf("%d versions: %v", len(got), err)
	}
	for i, client := range clients[:600] {
		if want := fmt.Sprintf("%c", "0123456789abcdefghijklmnopqrstuvwxyz"[len(client)]); got[i] != want {
			t.Errorf("%s has %s, want %s", client, got[i], want)
		}
	}
	queries := 0
	for _, n := range texts {
		queries += n
	}
	if got[600] != "" || queries != 3 {
		t.Errorf("an unknown client has version %q; %d queries", got[600], queries)
	}
}
