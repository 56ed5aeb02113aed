package outbox_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/go-webhookcfg/webhookcfg/deliver/outbox"
)

// TestPgx: a transaction of pgx enqueues what Statement returns. If it's rolled back, nothing is
// sent.
func TestPgx(t *testing.T) {
	f := newFixture(t, engines[1], nil, nil)
	conn, err := pgx.Connect(t.Context(), f.dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	enqueue := func(id string, end func(pgx.Tx) error) {
		t.Helper()
		tx, err := conn.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second one is the same
			query, args, err := f.box.Statement(notification("a", "e", id))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tx.Exec(t.Context(), query, args...); err != nil {
				t.Fatal(err)
			}
		}
		if err := end(tx); err != nil {
			t.Fatal(err)
		}
	}
	f.set("a", "/")
	f.run()
	enqueue("undone", func(tx pgx.Tx) error { return tx.Rollback(t.Context()) })
	enqueue("done", func(tx pgx.Tx) error { return tx.Commit(t.Context()) })
	f.await(1, 20*time.Second)
	f.awaitEnds(outbox.Delivered, 1)
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.arrivals["done"]) != 1 || len(f.order) != 1 {
		t.Errorf("arrived: %q", f.order)
	}
}
