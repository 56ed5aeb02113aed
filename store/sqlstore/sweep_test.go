package sqlstore_test

import (
	"bytes"
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/store/sqlstore"
)

// obsoleteRows is a database where clients have obsolete rows. A statement deletes one of
// them.
type obsoleteRows struct {
	rows    map[string]int
	broken  string // the client whose rows can't be deleted
	deleted string // the client of each attempt to delete a row
}

func (o *obsoleteRows) on(call string, args []driver.NamedValue) (found resultRows, err error) {
	switch {
	case strings.HasPrefix(call, "SELECT id, gen"):
		for _, client := range slices.Sorted(maps.Keys(o.rows)) {
			if client > bytesOf(args) && o.rows[client] > 0 {
				found = append(found, dirtyRow(client))
			}
		}
	case strings.HasPrefix(call, "SELECT MIN"):
		if o.rows[string(args[0].Value.([]byte))] > 0 {
			return resultRows{{int64(1)}}, nil
		}
		return resultRows{{nil}}, nil
	case strings.HasPrefix(call, "DELETE FROM wh_delivery"):
		return nil, errNoRows
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

// dirtyRow is a client with obsolete rows.
func dirtyRow(client string) []driver.Value {
	return []driver.Value{[]byte(client), int64(2), int64(0), int64(0), true, false}
}

// bytesOf returns the first name of the arguments.
func bytesOf(args []driver.NamedValue) string {
	for _, arg := range args {
		if name, ok := arg.Value.([]byte); ok {
			return string(name)
		}
	}
	return ""
}

// TestSweepTakesTurns: every client has its turn, even if an earlier one has more and more
// obsolete rows, and another's rows can't be deleted.
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

// TestSweepVacant: the row of a client is deleted in one transaction, and only if its mark is
// the same as when it was found without overrides.
func TestSweepVacant(t *testing.T) {
	const mark = int64(77)
	found := false
	s, f := openFake(t, sqlstore.PostgreSQL(), nil, func(call string, args []driver.NamedValue) (resultRows, error) {
		switch {
		case strings.HasPrefix(call, "DELETE FROM wh_delivery WHERE latest"):
			return nil, errNoRows
		case strings.HasPrefix(call, "SELECT id, gen") && !found:
			found = true
			return resultRows{{[]byte("acme"), int64(2), mark, int64(5), false, true}}, nil
		case strings.HasPrefix(call, "DELETE FROM wh_client"):
			if !slices.ContainsFunc(args, func(arg driver.NamedValue) bool { return arg.Value == any(mark) }) {
				t.Errorf("%s: %v", call, args)
			}
		}
		return nil, nil
	})
	removed, err := s.Sweep(t.Context(), 10)
	if want := "begin DELETE DELETE UPDATE commit"; err != nil || removed != 1 || !strings.HasSuffix(f.shape(), want) {
		t.Errorf("removed %d: %v; sent %s, want %s", removed, err, f.shape(), want)
	}
}

// TestSweepReachesAllClients: a call continues with the clients before its start, and deletes
// no more than its limit in both parts. When there are no more clients, the next call starts
// from scratch.
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

// TestSweepCountsCommits: a sweep counts the rows that were deleted before an error, but not
// those whose deletion wasn't acknowledged.
func TestSweepCountsCommits(t *testing.T) {
	for _, tt := range []struct {
		at      string
		err     error
		unknown bool
	}{
		{"begin", io.EOF, false},
		{"DELETE FROM wh_override", io.EOF, false},
		{"commit", &numberError{1290, "The server is running with --read-only"}, false},
		{"commit", io.EOF, true},
		{"commit", driver.ErrBadConn, true},
		{"", context.Canceled, false}, // before the commit
	} {
		ctx, cancel := context.WithCancel(t.Context())
		o := &obsoleteRows{rows: map[string]int{"acme": 5}}
		begun := 0
		s, _ := openFake(t, sqlstore.MySQL(), nil, func(call string, args []driver.NamedValue) (resultRows, error) {
			if call == "begin" {
				begun++
			}
			if begun == 3 {
				switch {
				case tt.at == "" && strings.HasPrefix(call, "DELETE"):
					cancel()
				case tt.at != "" && strings.HasPrefix(call, tt.at):
					return nil, tt.err
				}
			}
			return o.on(call, args)
		})
		removed, err := s.Sweep(ctx, 10)
		cancel()
		if removed != 2 || !errors.Is(err, tt.err) || errors.Is(err, sqlstore.ErrOutcomeUnknown) != tt.unknown {
			t.Errorf("%s fails with %v: removed %d: %v", tt.at, tt.err, removed, err)
		}
	}
}

// TestSweepEvery: it starts within the first interval, goes on while it finds something, logs
// an error and tries again after the interval, and returns when ctx ends.
func TestSweepEvery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		const many, interval = 1500, time.Minute
		var mu sync.Mutex
		rows, broken := many, false
		opts := &sqlstore.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}
		s, f := openFake(t, sqlstore.MySQL(), opts, func(call string, _ []driver.NamedValue) (resultRows, error) {
			mu.Lock()
			defer mu.Unlock()
			switch {
			case strings.HasPrefix(call, "DELETE FROM wh_delivery"):
				return nil, errNoRows
			case strings.HasPrefix(call, "SELECT id, gen") && broken:
				return nil, stateError("57P01")
			case strings.HasPrefix(call, "SELECT id, gen") && rows > 0:
				return resultRows{dirtyRow("acme")}, nil
			case strings.HasPrefix(call, "SELECT MIN") && rows > 0:
				return resultRows{{int64(1)}}, nil
			case strings.HasPrefix(call, "DELETE"):
				rows -= 1
			}
			return nil, nil
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); s.SweepEvery(ctx, interval) }()
		time.Sleep(interval)
		mu.Lock()
		if rows > 0 {
			t.Errorf("%d of %d rows are left after the first sweep", rows, many)
		}
		rows, broken = 1, true
		mu.Unlock()
		time.Sleep(interval)
		mu.Lock()
		broken = false
		mu.Unlock()
		queries := f.count("SELECT id, gen")
		time.Sleep(interval)
		mu.Lock()
		if rows > 0 {
			t.Error("no sweep after an error")
		}
		mu.Unlock()
		if n := f.count("SELECT id, gen"); n != queries+1 {
			t.Errorf("%d queries for clients in one interval", n-queries)
		}
		cancel()
		<-ended
		if n := strings.Count(log.String(), "57P01"); n != 1 || !strings.Contains(log.String(), "level=WARN") {
			t.Errorf("logged %s", log.String())
		}
	})
}

// TestSweepEveryGoesOn: a client whose row stays locked doesn't end the sweeps of others.
func TestSweepEveryGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &obsoleteRows{rows: map[string]int{"a": 1, "b": 1, "c": 1}}
		s, f := openFake(t, sqlstore.MySQL(), nil, o.on)
		f.hangs = func(query string, args []driver.NamedValue) bool {
			return strings.HasPrefix(strings.TrimSpace(query), "DELETE FROM wh_override") && string(args[0].Value.([]byte)) == "a"
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		s.SweepEvery(ctx, time.Minute)
		if o.rows["b"] > 0 || o.rows["c"] > 0 || o.rows["a"] == 0 {
			t.Errorf("left are %v", o.rows)
		}
	})
}
