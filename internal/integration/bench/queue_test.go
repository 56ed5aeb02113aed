package main

import (
	"os"
	"strings"
	"testing"
	"time"
)

// TestMain lets this program also be the other processes of a trial.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == "-receive" || os.Args[1] == "-send") {
		main()
		return
	}
	os.Exit(m.Run())
}

// TestQueues measures a little of everything on SQLite, to see that it runs.
func TestQueues(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: takes ten seconds")
	}
	s := settings{rounds: 2, turn: 20 * time.Millisecond, records: 20_000, loaded: 1000}
	r := newReport(s)
	s.queues(t, r)
	if rows := strings.Count(r.text.String(), "\n| SQLite"); rows != 13 {
		t.Errorf("the report has %d rows for SQLite, want 13", rows)
	}
	if err := r.write(t.TempDir()); err != nil {
		t.Error(err)
	}
}
