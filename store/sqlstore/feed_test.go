package sqlstore_test

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"example.com/go-webhookcfg/store/cache"
	"example.com/go-webhookcfg/store/sqlstore"
)

// TestFeedUnsupported: Changes sends nothing if the database doesn't number changes.
func TestFeedUnsupported(t *testing.T) {
	s, f := openFake(t, sqlstore.MySQL(), nil, failing("nothing", nil, 0))
	if _, err := s.Changes(t.Context(), ""); !errors.Is(err, errors.ErrUnsupported) || f.count("") > 0 {
		t.Errorf("%v; sent %s", err, f.shape())
	}
}

// TestCursor checks the result of Changes for each kind of cursor.
func TestCursor(t *testing.T) {
	head := func(snapshot string, newest int64) []driver.Value {
		return []driver.Value{false, "db", snapshot, newest, int64(10), nil}
	}
	erased := func(snapshot string, newest, erased int64) resultRows {
		return resultRows{{false, "db", snapshot, newest, erased, nil}, {false, nil, nil, nil, nil, []byte("a")}}
	}
	named := func(id string) []driver.Value { return []driver.Value{false, nil, nil, nil, nil, []byte(id)} }
	none := resultRows{head("20:31:", 12)}
	two := resultRows{named("a"), head("20:31:20,25", 30), named("b")} // in any order
	many := resultRows{head("20:31:", 30)}
	for n := range 4097 {
		many = append(many, named(fmt.Sprint(n)))
	}
	const max = "9223372036854775807"
	for _, tt := range []struct {
		name, since    string
		rows           resultRows
		below, running string
		want           cache.Changes
	}{
		{"first", "", none, max, "{}", cache.Changes{Reset: true, Next: "db/13/"}},
		{"nothing", "db/13/", none, "13", "{}", cache.Changes{Next: "db/13/"}},
		{"two", "db/13/", two, "13", "{}", cache.Changes{Clients: []string{"a", "b"}, Next: "db/31/20,25"}},
		{"erased before the cursor", "db/13/", erased("20:31:", 30, 12), "13", "{}", cache.Changes{Clients: []string{"a"}, Next: "db/31/"}},
		{"erased since", "db/13/", erased("20:31:", 30, 13), "13", "{}", cache.Changes{Reset: true, Next: "db/31/"}},
		{"erased, the newest", "db/13/", erased("20:31:", 12, 20), "13", "{}", cache.Changes{Reset: true, Next: "db/21/"}},
		{"erased, by a transaction that was running", "db/13/11", erased("20:31:", 30, 12), "13", "{11}", cache.Changes{Reset: true, Next: "db/31/"}},
		{"erased before one that was running", "db/13/12", erased("20:31:", 30, 11), "13", "{12}", cache.Changes{Clients: []string{"a"}, Next: "db/31/"}},
		{"erased after one that is running", "db/13/11", erased("11:31:11", 30, 12), "13", "{11}", cache.Changes{Clients: []string{"a"}, Next: "db/31/11"}},
		{"running", "db/13/11,12", two, "13", "{11,12}", cache.Changes{Clients: []string{"a", "b"}, Next: "db/31/20,25"}},
		{"running since the newest", "db/13/", resultRows{head("20:31:20,25,26", 24)}, "13", "{}", cache.Changes{Next: "db/25/20"}},
		{"too many", "db/13/", many, "13", "{}", cache.Changes{Reset: true, Next: "db/31/"}},
		{"just not too many", "db/13/", many[:2], "13", "{}", cache.Changes{Clients: []string{"0"}, Next: "db/31/"}},
		{"of another database", "other/13/", two, "13", "{}", cache.Changes{Reset: true, Next: "db/31/20,25"}},
		{"newest replaced by an earlier one", "db/20/", resultRows{named("a"), head("20:31:", 12)}, "20", "{}", cache.Changes{Clients: []string{"a"}, Next: "db/20/"}},
		{"of another database, beyond the newest", "other/20/", none, "20", "{}", cache.Changes{Reset: true, Next: "db/13/"}},
		{"of the future", "db/32/", two, "32", "{}", cache.Changes{Reset: true, Next: "db/31/20,25"}},
		{"without an identity", "/13/", two, max, "{}", cache.Changes{Reset: true, Next: "db/31/20,25"}},
		{"without a number", "db//", two, max, "{}", cache.Changes{Reset: true, Next: "db/31/20,25"}},
		{"with a part too few", "db/13", two, max, "{}", cache.Changes{Reset: true, Next: "db/31/20,25"}},
		{"with a part too many", "db/13//", two, max, "{}", cache.Changes{Reset: true, Next: "db/31/20,25"}},
		{"negative", "db/-1/", two, max, "{}", cache.Changes{Reset: true, Next: "db/31/20,25"}},
		{"no transaction", "db/13/x", two, max, "{}", cache.Changes{Reset: true, Next: "db/31/20,25"}},
		{"no cursor at all", "'; DROP", two, max, "{}", cache.Changes{Reset: true, Next: "db/31/20,25"}},
	} {
		s, _ := openFake(t, sqlstore.PostgreSQL(), nil, func(call string, args []driver.NamedValue) (resultRows, error) {
			if strings.HasPrefix(call, "SELECT") {
				want := map[any]bool{tt.below: true, tt.running: true, int64(4097): true}
				for _, arg := range args {
					if !want[arg.Value] {
						t.Errorf("%s: parameter %v, want one of %v", tt.name, arg.Value, want)
					}
				}
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

// TestCursorIsBounded: a cursor lists at most 1,024 running transactions, and stops at the
// next one.
func TestCursorIsBounded(t *testing.T) {
	var xips []string
	for n := range 2000 {
		xips = append(xips, strconv.Itoa(100+n))
	}
	s, _ := openFake(t, sqlstore.PostgreSQL(), nil, func(string, []driver.NamedValue) (resultRows, error) {
		return resultRows{{false, "db", "100:9000:" + strings.Join(xips, ","), int64(8999), int64(0), nil}}, nil
	})
	first, err := s.Changes(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	if want := "db/1124/" + strings.Join(xips[:1024], ","); first.Next != want {
		t.Errorf("the cursor has %d bytes, starts %.20s", len(first.Next), first.Next)
	}
	if again, err := s.Changes(t.Context(), first.Next); err != nil || again.Reset {
		t.Errorf("the cursor was not recognized: %+v, %v", again.Reset, err)
	}
	if longer, err := s.Changes(t.Context(), first.Next+",1125"); err != nil || !longer.Reset {
		t.Errorf("a longer cursor was accepted: %v", err)
	}
}

// TestHalfMigratedFeed: without an identity or a snapshot, Changes returns an error.
func TestHalfMigratedFeed(t *testing.T) {
	for _, rows := range []resultRows{nil, {{false, nil, "20:31:", int64(30), int64(0), nil}}, {{false, "db", "", int64(30), int64(0), nil}}, {{false, "db", "20:31:x", int64(30), int64(0), nil}}} {
		s, _ := openFake(t, sqlstore.SQLite(), nil, func(string, []driver.NamedValue) (resultRows, error) { return rows, nil })
		if changes, err := s.Changes(t.Context(), ""); err == nil {
			t.Errorf("got %v", changes)
		}
	}
}

// TestVersions: one query reads many clients, a few texts are enough for any number of them,
// and the versions come in the order of the clients.
func TestVersions(t *testing.T) {
	texts := make(map[string]int)
	s, _ := openFake(t, sqlstore.MySQL(), nil, func(call string, args []driver.NamedValue) (resultRows, error) {
		if call == "connect" {
			return nil, nil
		}
		texts[call]++
		seen := make(map[string]bool)
		rows := resultRows{{false, "db", nil, int64(37)}} // of a client without a row
		for _, arg := range args {
			if id := string(arg.Value.([]byte)); !seen[id] && id != "unknown" {
				seen[id] = true
				rows = append([][]driver.Value{{false, nil, []byte(id), int64(len(id))}}, rows...)
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
		if want := fmt.Sprintf("db/%c", "0123456789abcdefghijklmnopqrstuvwxyz"[len(client)]); got[i] != want {
			t.Errorf("%s has %s, want %s", client, got[i], want)
		}
	}
	queries := 0
	for _, n := range texts {
		queries += n
	}
	if got[600] != "db/.11" || queries != 3 {
		t.Errorf("an unknown client has version %q; %d queries", got[600], queries)
	}
}

// TestVersionsWithoutIdentity: marks alone aren't versions.
func TestVersionsWithoutIdentity(t *testing.T) {
	for _, rows := range []resultRows{nil, {{false, nil, []byte("acme"), int64(1)}}, {{false, nil, nil, nil}, {false, nil, []byte("acme"), int64(1)}}} {
		s, _ := openFake(t, sqlstore.SQLite(), nil, func(string, []driver.NamedValue) (resultRows, error) { return rows, nil })
		if versions, err := s.Versions(t.Context(), []string{"acme"}); err == nil {
			t.Errorf("got %v", versions)
		}
	}
}
