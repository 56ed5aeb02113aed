package sqlstore_test

import (
	"database/sql/driver"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"example.com/go-webhookcfg/store/sqlstore"
)

// obsoleteRows is a database with obsolete rows of clients, of which one statement deletes
// one.
type obsoleteRows struct {
	rows    map[string]int
	broken  string // the client whose rows cannot be deleted
	deleted string // the clients of the attempts to delete a row
}

func (o *obsoleteRows) on(call string, args []driver.NamedValue) (found resultRows, err error) {
	switch {
	case strings.HasPrefix(call, "SELECT id, gen"):
		for _, client := range slices.Sorted(maps.Keys(o.rows)) {
			if client > string(args[0].Value.([]byte)) && o.rows[client] > 0 {
				found = append(found, []driver.Value{[]byte(client), int64(2)})
			}
		}
	case strings.HasPrefix(call, "SELECT MIN"):
		if o.rows[string(args[0].Value.([]byte))] > 0 {
			return resultRows{{int64(1)}}, nil
		}
		return resultRows{{nil}}, nil
	case strings.HasPrefix(call, "DELETE"):
		client := string(args[0].Value.([]byte))
		o.deleted += client
		if client == o.broken {
			return nil, errors.New("broken")
		}
		o.rows[client]--
	}
	return found, nil
}

// TestSweepTakesTurns: every client has its turn, although an earlier one has ever more
// obsolete rows, and the rows of another cannot be deleted.
func TestSweepTakesTurns(t *testing.T) {
	o := &obsoleteRows{rows: map[string]int{"a": 100, "b": 100, "c": 100, "d": 1}, broken: "b"}
	s, _ := openFake(t, sqlstore.MySQL(), nil, o.on)
	for n, want := range "abcdabcab" {
		removed, err := s.Sweep(t.Context(), 1)
		if broken := want == 'b'; (err != nil) != broken || (removed == 0) != broken {
			t.Errorf("sweep %d removed %d: %v", n, removed, err)
		}
	}
	if want := "abcdabcab"; o.deleted != want {
		t.Errorf("the order is %s, want %s", o.deleted, want)
	}
}

// TestSweepReachesAllClients: a call continues with the clients before its start, and
// deletes no more than its limit in both parts. When no client is left, it starts from
// scratch.
func TestSweepReachesAllClients(t *testing.T) {
	o := &obsoleteRows{rows: map[string]int{"b": 3, "c": 2, "d": 1}}
	s, f := openFake(t, sqlstore.SQLite(), nil, o.on)
	for n, tt := range []struct {
		limit, removed int
		deleted        string
	}{{1, 1, "b"}, {5, 5, "ccdab"}, {10, 1, "b"}, {10, 0, ""}} {
		o.deleted = ""
		removed, err := s.Sweep(t.Context(), tt.limit)
		if err != nil || removed != tt.removed || o.deleted != tt.deleted {
			t.Errorf("sweep %d removed %d from %q, want %d from %q: %v", n, removed, o.deleted, tt.removed, tt.deleted, err)
		}
		o.rows["a"] = max(0, 1-n)
	}
	if n := f.count("SELECT id, gen"); n != 1+2+2+1 {
		t.Errorf("%d queries for clients", n)
	}
}
