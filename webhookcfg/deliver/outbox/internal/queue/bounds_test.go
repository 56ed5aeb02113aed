package queue

import (
	"fmt"
	"testing"
	"time"

	"example.com/go-webhookcfg/store/sqlstore"
)

// TestStatementsAreBounded: however many kinds of questions there are, the statements that are
// remembered are bounded, and the others work.
func TestStatementsAreBounded(t *testing.T) {
	t.Parallel()
	tables, err := NewTables(nil, sqlstore.SQLite(), "wh_")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 * maxStatements {
		want := fmt.Sprint("SELECT ", i, " FROM wh_outbox_line")
		for range 2 {
			if got := tables.Statement(fmt.Sprint("SELECT ", i, " FROM {line}")).Text; got != want {
				t.Fatalf("got %s, want %s", got, want)
			}
		}
	}
	n := 0
	tables.statements.Range(func(any, any) bool { n++; return true })
	if n != maxStatements {
		t.Errorf("%d statements are remembered, want %d", n, maxStatements)
	}
}

// TestExpectedIsBounded: clients for which Committed is never called cost a bounded memory.
func TestExpectedIsBounded(t *testing.T) {
	t.Parallel()
	q := New(nil, nil, Options{})
	q.process = &process{}
	for i := range 10 * maxExpected {
		q.Expect(fmt.Sprint("c", i))
	}
	if n := len(q.expected); n != maxExpected {
		t.Errorf("%d are remembered, want %d", n, maxExpected)
	}
}

// TestRestsWithoutLease: while a process may start nothing, what's due doesn't make its lines look again and
// again.
func TestRestsWithoutLease(t *testing.T) {
	t.Parallel()
	p := &process{}
	d := &drain{process: p}
	due := time.Now()
	if pause := d.pause(due); pause < maxPoll {
		t.Errorf("it rests for %v without a lease", pause)
	}
	p.valid = due.Add(time.Hour)
	if pause := d.pause(due); pause >= maxPoll {
		t.Errorf("it rests for %v with one", pause)
	}
}
