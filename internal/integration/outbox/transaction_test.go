package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"example.com/go-webhookcfg/store/sqlstore"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/deliver/outbox"
	"example.com/go-webhookcfg/webhookcfg/sent"
)

func notification(client, entity, id string) outbox.Notification {
	return outbox.Notification{Client: client, Entity: entity, Message: deliver.Message{ID: id, Body: []byte(`{}`)}}
}

// TestLateCommit holds a transaction open while many others pass, and rolls another one back.
func TestLateCommit(t *testing.T) {
	for _, e := range engines[1:] { // SQLite has one writer at a time
		t.Run(e.name, func(t *testing.T) {
			f := newFixture(t, e, nil, nil)
			f.set("a", "/")
			f.run()
			late, err := f.db.Begin()
			if err != nil {
				t.Fatal(err)
			}
			if err := f.box.Enqueue(t.Context(), late, notification("a", "late", "late")); err != nil {
				t.Fatal(err)
			}
			rolledBack, err := f.db.Begin()
			if err != nil {
				t.Fatal(err)
			}
			if err := f.box.Enqueue(t.Context(), rolledBack, notification("a", "e", "never")); err != nil {
				t.Fatal(err)
			}
			const n = 2000
			f.fill("a", n, "m")
			f.await(n, time.Minute)
			if err := rolledBack.Rollback(); err != nil {
				t.Fatal(err)
			}
			if err := late.Commit(); err != nil {
				t.Fatal(err)
			}
			f.await(n+1, 5*time.Second)
			f.awaitStats(func(s outbox.Stats) bool { return s.Delivered == n+1 && s.Waiting == 0 })
			f.mu.Lock()
			defer f.mu.Unlock()
			if len(f.arrivals["late"]) != 1 || len(f.arrivals["never"]) != 0 {
				t.Errorf("late arrived %d times, the one that was rolled back %d times", len(f.arrivals["late"]), len(f.arrivals["never"]))
			}
		})
	}
}

func (f *fixture) awaitStats(want func(outbox.Stats) bool) {
	f.t.Helper()
	var s outbox.Stats
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		var err error
		if s, err = f.box.Stats(context.Background()); err == nil && want(s) {
			return
		}
	}
	f.t.Fatalf("stats: %+v", s)
}

// TestSmallPools: a pool of one or two connections is enough.
func TestSmallPools(t *testing.T) {
	for _, e := range engines {
		for _, size := range []int{1, 2} {
			t.Run(fmt.Sprint(e.name, " ", size), func(t *testing.T) {
				f := newFixture(t, e, nil, nil)
				f.db.SetMaxOpenConns(size)
				for c := range 20 {
					f.set(fmt.Sprint("c", c), "/")
					f.fill(fmt.Sprint("c", c), 20, fmt.Sprint("m", c, "-"))
				}
				stop := f.run()
				f.await(400, time.Minute)
				stop()
			})
		}
	}
}

// TestOnceAndAgain: the same ID is one notification, also after it was delivered, until it's
// sent again or erased.
func TestOnceAndAgain(t *testing.T) {
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			f := newFixture(t, e, nil, nil)
			f.set("a", "/")
			f.run()
			f.enqueue("a", "e", "m1", "m1", "m2")
			f.awaitEnds(outbox.Delivered, 2)
			f.enqueue("a", "e", "m1")
			if err := f.box.SendAgain(t.Context(), "a", sent.Selection{ID: "m2"}); err != nil {
				t.Fatal(err)
			}
			if err := f.box.SendAgain(t.Context(), "a", sent.Selection{ID: "m3"}); !errors.Is(err, sent.ErrNotFound) {
				t.Errorf("sent an unknown one again: %v", err)
			}
			f.awaitArrivals("m2", 2)
			f.awaitEnds(outbox.Delivered, 2)
			f.mu.Lock()
			if got := len(f.arrivals["m1"]); got != 1 {
				t.Errorf("m1 arrived %d times", got)
			}
			f.mu.Unlock()
			if n, err := f.box.Erase(t.Context(), "a"); n != 2 || err != nil {
				t.Errorf("erased %d: %v", n, err)
			}
			f.enqueue("a", "e", "m1")
			f.awaitArrivals("m1", 2)
		})
	}
}

func (f *fixture) awaitArrivals(id string, n int) {
	f.t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		f.mu.Lock()
		got := len(f.arrivals[id])
		f.mu.Unlock()
		if got >= n {
			return
		}
	}
	f.t.Fatalf("%s didn't arrive %d times", id, n)
}

// TestBadInput: what can't work is refused with an error that says why, and nothing is done.
func TestBadInput(t *testing.T) {
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			f := newFixture(t, e, nil, &deliver.Options{MaxBody: 10})
			big := notification("a", "e", "m")
			big.Message.Body = make([]byte, 11)
			for what, n := range map[string]outbox.Notification{
				"the body has 11 bytes": big,
				"the client has 0":      notification("", "e", "m"),
				"the entity has 1025":   notification("a", strings.Repeat("e", 1025), "m"),
				"message ID":            notification("a", "e", "a b"),
			} {
				err := f.box.Enqueue(t.Context(), f.db, n)
				if !errors.Is(err, outbox.ErrInvalid) || !strings.Contains(err.Error(), what) {
					t.Errorf("%s: %v", what, err)
				}
			}
			tx, err := f.db.Begin()
			if err != nil {
				t.Fatal(err)
			}
			_ = tx.Rollback()
			if err := f.box.Enqueue(t.Context(), tx, notification("a", "e", "m")); err == nil {
				t.Error("enqueued in a transaction that is done")
			}
			missing, err := outbox.New(f.db, e.dialect, f.sender, &outbox.Options{Prefix: "nothing_"})
			if err != nil {
				t.Fatal(err)
			}
			if err := missing.Run(t.Context()); !errors.Is(err, outbox.ErrNoTables) {
				t.Errorf("without tables: %v", err)
			}
			f.run()
			f.set("a", "/")
			f.enqueue("a", "e", "m")
			f.await(1, 5*time.Second)
			other, err := outbox.New(f.db, e.dialect, f.sender, &outbox.Options{Prefix: f.prefix, Schedule: deliver.Schedule{}})
			if err != nil {
				t.Fatal(err)
			}
			if err := other.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "another Schedule") {
				t.Errorf("with another schedule: %v", err)
			}
			if _, err := f.db.Exec("UPDATE " + f.prefix + "outbox_schema SET version = 9"); err != nil {
				t.Fatal(err)
			}
			if err := f.box.Migrate(t.Context()); !errors.Is(err, outbox.ErrNewerSchema) {
				t.Errorf("newer tables: %v", err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second) // as if it worked
			defer cancel()
			if err := f.peer(e, f.db, outbox.Options{}).Run(ctx); !errors.Is(err, outbox.ErrNewerSchema) {
				t.Errorf("running with newer tables: %v", err)
			}
		})
	}
	if _, err := outbox.New(nil, sqlstore.SQLite(), nil, nil); err == nil {
		t.Error("New without a database")
	}
}

// TestJoinTogether: of two processes with different schedules that start at the same time, one is
// refused.
func TestJoinTogether(t *testing.T) {
	t.Parallel()
	e := engines[1]
	f := newFixture(t, e, nil, nil)
	ends := func(c call) bool { return strings.HasPrefix(c.kind, "COMMIT after SELECT settings") }
	inTime := make(chan struct{}) // the second one joins before the first one has
	second, _ := f.wired(func(c call) (before, after error) {
		if ends(c) {
			close(inTime)
		}
		return nil, nil
	})
	started, refused := make(chan struct{}), make(chan error, 1)
	first, _ := f.wired(func(c call) (before, after error) {
		if !ends(c) {
			return nil, nil
		}
		close(started)
		for {
			var waiting bool
			err := f.db.QueryRow("SELECT COUNT(*) > 0 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%" + f.prefix + "%'").Scan(&waiting)
			if err != nil || waiting {
				return err, nil
			}
			select {
			case <-inTime:
				return nil, nil
			case <-time.After(10 * time.Millisecond):
			}
		}
	})
	f.runBox(f.peer(e, first, outbox.Options{}))
	<-started
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second) // as if it worked
	defer cancel()
	go func() { refused <- f.peer(e, second, outbox.Options{Schedule: deliver.Schedule{time.Hour}}).Run(ctx) }()
	if err := <-refused; err == nil || !strings.Contains(err.Error(), "another Schedule") {
		t.Errorf("the second one: %v", err)
	}
}
