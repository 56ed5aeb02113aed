package sqlite_test

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"example.com/go-webhookcfg/store/sqlstore"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// fillVoid inserts generations of void rows for a client. It uses SQL, which is faster than
// making so many changes.
func fillVoid(t *testing.T, db *sql.DB, client string, generations, rows int) {
	t.Helper()
	const fill = `INSERT INTO wh_override (client, gen, entity, url, since)
WITH RECURSIVE g(i) AS (VALUES (0) UNION ALL SELECT i + 1 FROM g WHERE i < ?2 - 1),
  n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < ?3)
SELECT ?1, g.i, CAST('e' || n.i AS BLOB), x'', 0 FROM g, n`
	const client0 = `INSERT INTO wh_client (id, gen, swept, url, since, mark, vacated, chg) VALUES (?1, ?2, 0, x'', 0, 0, 0, 1)`
	if _, err := db.ExecContext(t.Context(), fill, []byte(client), generations, rows); err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), client0, []byte(client), generations); err != nil {
		t.Fatal(err)
	}
}

func countRows(t *testing.T, db *sql.DB, table string) (n int) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM "+table).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestSweep checks that sweeps delete all void rows and no others, and never more than limit
// rows in a call.
func TestSweep(t *testing.T) {
	path := newPath(t)
	s, db := open(t, path), openDB(t, path, unsynced)
	live := webhookcfg.SetChange("a", webhookcfg.Entity("e1"), egress.NewURL("https://live.example.com/"))
	fillVoid(t, db, "a", 3, 700)
	fillVoid(t, db, "b", 2, 500)
	for n := range 250 { // more than one statement selects
		fillVoid(t, db, fmt.Sprintf("c%d", n), 1, 1)
	}
	if err := s.Apply(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	const void = 3*700 + 2*500 + 250
	sum := 0
	for _, limit := range []int{1, 499, 501, 1200, 7, 10_000} {
		removed, err := s.Sweep(t.Context(), limit)
		if err != nil {
			t.Fatal(err)
		}
		sum += removed
		if want := min(limit, void-sum+removed); removed != want {
			t.Errorf("a sweep of %d removed %d, want %d", limit, removed, want)
		}
		if left := countRows(t, db, "wh_override"); left != void-sum+1 {
			t.Errorf("%d rows are left after %d", left, sum)
		}
	}
	if removed, err := s.Sweep(t.Context(), 1); removed != 0 || err != nil {
		t.Errorf("a sweep of nothing removed %d: %v", removed, err)
	}
	if dirty := countRows(t, db, "wh_client WHERE swept < gen"); dirty > 0 {
		t.Errorf("%d clients are still marked for a sweep", dirty)
	}
	if hook, err := s.Resolve(t.Context(), "a", "e1"); err != nil || !hook.URL.Equal(live.URL) {
		t.Errorf("got %v: %v", hook, err)
	}
}

// TestSweepDuringChanges checks that a sweep during changes deletes no row in effect, and
// that a final sweep leaves no other rows.
func TestSweepDuringChanges(t *testing.T) {
	path := newPath(t)
	s, sweeper, db := open(t, path), open(t, path), openDB(t, path, unsynced)
	over := make(chan struct{})
	var sweeps sync.WaitGroup
	sweeps.Go(func() {
		for done := false; !done; {
			select {
			case <-over:
				done = true
			default:
			}
			if _, err := sweeper.Sweep(t.Context(), 1+rand.IntN(20)); err != nil {
				t.Error(err)
				return
			}
		}
	})
	var writers sync.WaitGroup
	live := make([]int, 4)
	for w := range live {
		writers.Go(func() { live[w] = churn(t, s, writerName(w), 120) })
	}
	writers.Wait()
	close(over)
	sweeps.Wait()
	if _, err := sweeper.Sweep(t.Context(), 1_000_000); err != nil {
		t.Fatal(err)
	}
	want := 0
	for _, n := range live {
		want += n
	}
	if left := countRows(t, db, "wh_override"); left != want {
		t.Errorf("%d rows are left of %d in effect", left, want)
	}
}

// churn makes random changes of a client, compares the result of each with a map, and returns
// how many overrides there are at the end.
func churn(t *testing.T, s *sqlstore.Store, client string, changes int) int {
	hasBase, overrides := false, map[string]string{}
	for n := range changes {
		entity, url := fmt.Sprint("e", rand.IntN(6)), fmt.Sprintf("https://h.example.com/%d", n)
		var c webhookcfg.Change
		switch rand.IntN(8) {
		case 0:
			c = webhookcfg.SetChange(client, webhookcfg.All(), egress.NewURL(url))
			hasBase, overrides = true, map[string]string{}
		case 1:
			c = webhookcfg.UnsetChange(client, webhookcfg.All())
			hasBase, overrides = false, map[string]string{}
		case 2, 3:
			c = webhookcfg.UnsetChange(client, webhookcfg.Entity(entity))
			delete(overrides, entity)
			if hasBase {
				overrides[entity] = ""
			}
		default:
			c = webhookcfg.SetChange(client, webhookcfg.Entity(entity), egress.NewURL(url))
			overrides[entity] = url
		}
		if err := s.Apply(t.Context(), c); err != nil {
			t.Error(err)
			return 0
		}
		if err := compare(t.Context(), s, client, overrides); err != nil {
			t.Errorf("after change %d: %v", n, err)
			return 0
		}
	}
	return len(overrides)
}

// compare lists the client and compares the list with a map.
func compare(ctx context.Context, s webhookcfg.Lister, client string, want map[string]string) error {
	page, err := s.List(ctx, client, "", 100)
	if err != nil {
		return err
	}
	if len(page.Overrides) != len(want) {
		return fmt.Errorf("%d overrides, want %d", len(page.Overrides), len(want))
	}
	for _, o := range page.Overrides {
		if url, ok := want[o.Entity]; !ok || url != o.Webhook.URL.Reveal() {
			return fmt.Errorf("%s is %s, want %q", o.Entity, o.Webhook.URL.Reveal(), url)
		}
	}
	return nil
}
