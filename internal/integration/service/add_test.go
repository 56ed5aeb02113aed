package service_test

import (
	"context"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// TestAddAtOnce: a client gets two secrets, however many processes add one at the same moment. The
// others are told to retire one first.
func TestAddAtOnce(t *testing.T) {
	t.Parallel()
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	const processes = 6
	store := newDatabase(t)
	if output, err := exec.CommandContext(t.Context(), path, "-store", store, "migrate").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	connect := func() *pgx.Conn {
		t.Helper()
		conn, err := pgx.Connect(t.Context(), store)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
		return conn
	}
	watcher := connect() // a transaction always sees the same activity
	tx, err := connect().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// An INSERT has counted by the time it waits for this lock.
	if _, err := watcher.Exec(t.Context(), `CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS
		$$ BEGIN PERFORM pg_advisory_xact_lock_shared(1); RETURN NEW; END $$;
		CREATE TRIGGER hold BEFORE INSERT ON secrets FOR EACH ROW EXECUTE FUNCTION hold()`); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "SELECT pg_advisory_xact_lock(1)"); err != nil {
		t.Fatal(err)
	}

	var all sync.WaitGroup
	var added atomic.Int32
	for n := range processes {
		all.Go(func() {
			output, err := exec.CommandContext(t.Context(), path, "-store", store, "add", client, string(rune('a'+n))).CombinedOutput()
			if err == nil {
				added.Add(1)
			} else if !strings.Contains(string(output), "has two secrets already") {
				t.Errorf("%v: %s", err, output)
			}
		})
	}
	for waiting, deadline := 0, time.Now().Add(time.Minute); waiting < processes; time.Sleep(10 * time.Millisecond) {
		const query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
		if err := watcher.QueryRow(t.Context(), query).Scan(&waiting); err != nil || time.Now().After(deadline) {
			t.Errorf("%d processes wait, %v", waiting, err)
			break
		}
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Error(err)
	}
	all.Wait()
	if added.Load() != 2 {
		t.Errorf("%d secrets were added", added.Load())
	}
}
