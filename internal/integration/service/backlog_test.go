package service_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// TestFlood: if a client floods a receiver that hangs, its notifications go on to an
// overflow. A client in the same shard is served meanwhile. Nothing is lost in either queue.
func TestFlood(t *testing.T) {
	const backlog = workers / 2
	onEachEngine(t, func(t *testing.T, store string) {
		path, err := build()
		if err != nil {
			t.Fatal(err)
		}
		p := start(t, path, store, "-backlog", fmt.Sprint(backlog), "-timeout", "30s")
		l := newLedger(t, p.signingKey())
		release := make(chan struct{})
		p.set("", l.serve(l.holding(release)))
		p.mustChange(l, "hanging", flood)
		l.await(func() bool { return l.held > 0 })
		neighbour := p.as(neighbour)
		n := newLedger(t, neighbour.signingKey())
		neighbour.mustChange(n, "e1", 1)
		neighbour.set("e1", n.serve(accepting))
		neighbour.mustChange(n, "e1", healthy)
		n.await(func() bool { return n.count("e1") >= healthy })
		close(release)
		p.drain()
		if acknowledged, lost, _ := l.totals(); lost > 0 {
			t.Errorf("of %d changes %d are lost", acknowledged, lost)
		}
		if names := queues(t, store); names != nil && len(names) != 2 {
			t.Errorf("the notifications were in %v, want a shard and its overflow", names)
		}
	})
}

// queues returns the queues that jobs in PostgreSQL are or were in. For SQLite it returns
// nil.
func queues(t *testing.T, store string) []string {
	t.Helper()
	if !strings.HasPrefix(store, "postgres:") {
		return nil
	}
	conn, err := pgx.Connect(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	rows, err := conn.Query(t.Context(), "SELECT DISTINCT queue FROM river_job ORDER BY queue")
	if err != nil {
		t.Fatal(err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// TestSetMakesDue: when the client sets another URL, notifications that failed at a receiver,
// or wait for its pause, are delivered long before they would be due.
func TestSetMakesDue(t *testing.T) {
	const changes = 30
	onEachEngine(t, func(t *testing.T, store string) {
		path, err := build()
		if err != nil {
			t.Fatal(err)
		}
		p := start(t, path, store, "-schedule", "24h", "-max-pause", "24h")
		l := newLedger(t, p.signingKey())
		p.set("", l.serve(failing))
		p.mustChange(l, "e1", changes)
		p.await(func(f figures) bool {
			return f.Results["deferred/paused"] > 0 && f.Queue.UnderWay == 0
		})
		p.set("", l.serve(accepting))
		l.await(func() bool { return l.count("e1") == changes })
		p.drain()
	})
}

// TestRecoveryMakesDue: when a receiver recovers, notifications that failed there are
// delivered long before they would be due.
func TestRecoveryMakesDue(t *testing.T) {
	const changes = 100
	onEachEngine(t, func(t *testing.T, store string) {
		path, err := build()
		if err != nil {
			t.Fatal(err)
		}
		flags := []string{"-schedule", "24h", "-max-pause", "1s"}
		p := start(t, path, store, flags...)
		l := newLedger(t, p.signingKey())
		recovered := make(chan struct{})
		p.set("", l.serve(func(w http.ResponseWriter, r *http.Request, nth int) bool {
			select {
			case <-recovered:
				return true
			default:
				return failing(w, r, nth)
			}
		}))
		// Another process doesn't know that the webhook was set a moment ago.
		p.stop()
		p.wait()
		p = start(t, path, store, flags...)
		p.mustChange(l, "e1", changes)
		// Five failures in a row pause the receiver. These notifications are due in a day.
		p.await(func(f figures) bool { return f.Results["deferred/paused"] > 0 })
		close(recovered)
		l.await(func() bool { return l.count("e1") == changes })
		p.drain()
	})
}

func failing(w http.ResponseWriter, _ *http.Request, _ int) bool {
	w.WriteHeader(http.StatusInternalServerError)
	return false
}
