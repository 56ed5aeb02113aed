package sqltest

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/go-webhookcfg/store/sqlstore"
	"example.com/go-webhookcfg/webhookcfg"
)

// patience is for calls that would never end without a fair share of the connections.
const patience = 90 * time.Second

// fairness locks the row of a client, like a process that disappears in the middle of a
// change. Then it sends more changes for the client than the pool has connections. Meanwhile,
// the calls of another client must succeed.
func (e Engine) fairness(t *testing.T) {
	dsn := e.Shared(t).DSN()
	admin := e.Open(t, dsn)
	name := prefix(t, admin)
	db := e.Open(t, dsn)
	db.SetMaxOpenConns(4)
	st := e.store(t, db, name)
	migrate(t, st)
	for _, client := range []string{"locked", "other"} {
		if err := st.Apply(t.Context(), anyChange(client, 1)); err != nil {
			t.Fatal(err)
		}
	}
	unlock := lockRow(t, admin, name+"client", "id = 'locked'", "swept = swept")
	e.abandon(t, st, admin, name)
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	var changes sync.WaitGroup
	for range 20 {
		changes.Go(func() {
			if err := st.Apply(ctx, anyChange("locked", 2)); err != nil {
				t.Errorf("a change of the locked client: %v", err)
			}
		})
	}
	callOther(t, st)
	if n := db.Stats().InUse; n > 1 {
		t.Errorf("the locked client holds %d connections", n)
	}
	unlock()
	changes.Wait()
}

// abandon makes changes of the locked client wait for its row, and cancels each. The server
// must end their sessions, although the row stays locked.
func (e Engine) abandon(t *testing.T, st *sqlstore.Store, admin *sql.DB, name string) {
	t.Helper()
	if e.Running == "" {
		return
	}
	query := strings.ReplaceAll(e.Running, "{prefix}", name)
	await := func(wait bool) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		for n := -1; n < 0 || (n > 0) != wait; {
			if err := admin.QueryRowContext(ctx, query).Scan(&n); err != nil {
				t.Fatalf("%d changes wait for the row: %v", n, err)
			}
		}
	}
	for range 10 {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- st.Apply(ctx, anyChange("locked", 2)) }()
		await(true)
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("an abandoned change: %v", err)
		}
	}
	await(false)
}

// lockRow locks the row that a condition selects, until you call the returned function. The
// assignment must change nothing.
func lockRow(t *testing.T, db *sql.DB, table, condition, assignment string) (unlock func()) {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.ExecContext(t.Context(), "UPDATE "+table+" SET "+assignment+" WHERE "+condition); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := tx.Rollback(); err != nil {
			t.Error(err)
		}
	}
}

// callOther calls every method for another client. It does so often enough that the first
// client's changes reach the database.
func callOther(t *testing.T, st *sqlstore.Store) {
	t.Helper()
	const rounds = 50
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for range rounds {
		_, resolve := st.Resolve(ctx, "other", "e1")
		_, list := st.List(ctx, "other", "", 10)
		_, versions := st.Versions(ctx, []string{"other"})
		apply := st.Apply(ctx, webhookcfg.UnsetChange("other", webhookcfg.Entity("e1")))
		for call, err := range map[string]error{"resolve": resolve, "list": list, "versions": versions, "apply": apply} {
			if err != nil {
				t.Fatalf("%s of another client: %v", call, err)
			}
		}
	}
}
