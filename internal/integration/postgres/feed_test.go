package postgres

import (
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"testing"
	"time"

	"example.com/go-webhookcfg/internal/integration/engine"
	"example.com/go-webhookcfg/internal/integration/engine/sqltest"
	"example.com/go-webhookcfg/store/cache"
	"example.com/go-webhookcfg/store/sqlstore"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// tables opens a pool, and creates the tables of a store in its database.
func tables(t *testing.T, dsn, prefix string) (*sql.DB, *sqlstore.Store) {
	t.Helper()
	db := sqltest.Driver("pgx")(t, dsn)
	st, err := sqlstore.New(db, sqlstore.PostgreSQL(), &sqlstore.Options{Prefix: prefix})
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return db, st
}

func execute(t *testing.T, db interface {
	Exec(query string, args ...any) (sql.Result, error)
}, statement string,
) {
	t.Helper()
	if _, err := db.Exec(statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// begin starts a transaction that has a number, like the transaction of every change.
func begin(t *testing.T, db *sql.DB) *sql.Tx {
	t.Helper()
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	execute(t, tx, "DO $$BEGIN PERFORM pg_current_xact_id(); END$$")
	return tx
}

func apply(t *testing.T, st *sqlstore.Store, client string) {
	t.Helper()
	c := webhookcfg.SetChange(client, webhookcfg.Entity("e1"), egress.NewURL("https://h.example.com/"))
	c.Time = time.Unix(1, 0)
	if err := st.Apply(t.Context(), c); err != nil {
		t.Fatal(err)
	}
}

// sequence is a sequence of calls of a feed.
type sequence struct {
	t    *testing.T
	feed cache.Feed
	next string
}

func (s *sequence) poll() cache.Changes {
	s.t.Helper()
	changes, err := s.feed.Changes(s.t.Context(), s.next)
	if err != nil {
		s.t.Fatal(err)
	}
	s.next = changes.Next
	return changes
}

// expect polls. The test fails unless exactly the given clients are reported.
func (s *sequence) expect(event string, clients ...string) {
	s.t.Helper()
	got := s.poll()
	slices.Sort(got.Clients)
	if got.Reset || !slices.Equal(got.Clients, clients) {
		s.t.Errorf("%s: reset %v, %d named: %.5q; want %q", event, got.Reset, len(got.Clients), got.Clients, clients)
	}
}

// expectReset polls. The test fails unless the store recognizes that the cursor isn't its
// own.
func (s *sequence) expectReset(event string) {
	s.t.Helper()
	if got := s.poll(); !got.Reset {
		s.t.Errorf("%s: %+v, want a reset", event, got)
	}
}

// TestFeedDuringTransactions: transactions can stay open, in any database of the server.
// Other changes are still reported once, and their own changes when they end.
func TestFeedDuringTransactions(t *testing.T) {
	t.Parallel()
	server := shared.Get(t)
	db, st := tables(t, server.DSN(), "during_")
	t.Cleanup(func() {
		execute(t, db, "DROP VIEW during_webhook; DROP TABLE during_schema, during_client, during_override, during_delivery")
	})
	execute(t, db, "CREATE DATABASE elsewhere")
	elsewhere := sqltest.Driver("pgx", database("elsewhere"))(t, server.DSN())
	t.Cleanup(func() {
		_ = elsewhere.Close()
		execute(t, db, "DROP DATABASE elsewhere")
	})
	begin(t, elsewhere)
	s := &sequence{t: t, feed: st}
	s.expectReset("first poll")
	late, aborted := begin(t, db), begin(t, db)
	for tx, client := range map[*sql.Tx]string{late: "late", aborted: "aborted"} {
		execute(t, tx, "INSERT INTO during_client VALUES ('"+client+"', 0, 0, '', 0, 1, 0, pg_current_xact_id())")
	}
	var many []string
	for n := range 100 {
		many = append(many, fmt.Sprintf("c%02d", n))
		apply(t, st, many[n])
	}
	s.expect("100 changes", many...)
	s.expect("nothing")
	if err := errors.Join(late.Commit(), aborted.Rollback()); err != nil {
		t.Fatal(err)
	}
	apply(t, st, "next")
	s.expect("the end of a transaction", "late", "next")
	s.expect("nothing")
}

// database changes the database of a DSN.
func database(name string) func(testing.TB, string) string {
	return func(t testing.TB, dsn string) string {
		t.Helper()
		u, err := url.Parse(dsn)
		if err != nil {
			t.Fatal(err)
		}
		u.Path = name
		return u.String()
	}
}

// TestFeedCursors checks cursors after events that make the server assign numbers of
// transactions again, or bring numbers from elsewhere.
func TestFeedCursors(t *testing.T) {
	t.Parallel()
	server := engine.PostgreSQL(t)
	server.SkipIfExternal(t)
	db, st := tables(t, server.DSN(), "")
	apply(t, st, "acme")
	s := &sequence{t: t, feed: st}
	s.expectReset("first poll")
	before := s.next
	execute(t, db, "INSERT INTO wh_client VALUES ('restored', 0, 0, '', 0, 0, 0, '9000000000000000000')")
	execute(t, db, "DO $$BEGIN PERFORM pg_current_xact_id(); END$$") // a number without a change
	if s.expect("a number of another server"); s.next != before {
		t.Errorf("the cursor moved from %s to %s", before, s.next)
	}
	execute(t, db, "TRUNCATE wh_client")
	apply(t, st, "acme")
	s.expectReset("table filled again")
	execute(t, db, "DROP TABLE wh_override CASCADE; UPDATE wh_schema SET version = 0")
	if err := st.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.expectReset("table of overrides created again")
	if err := errors.Join(server.Kill(), server.Save(), server.Restart()); err != nil {
		t.Fatal(err)
	}
	_, st = tables(t, server.DSN(), "")
	s.feed = st
	s.expectReset("server restarted")
	apply(t, st, "lost")
	s.expect("change", "lost")
	if err := errors.Join(server.Kill(), server.Restore(), server.Restart()); err != nil {
		t.Fatal(err)
	}
	_, st = tables(t, server.DSN(), "")
	s.feed = st
	for range 20 { // so that the numbers of the lost changes are assigned again
		apply(t, st, "other")
	}
	s.expectReset("data restored")
}

// TestFeedOfADump: a dump of another server brings higher numbers of transactions than this one has
// assigned, also of clients that were erased. They neither make each call of the feed a reset, nor hide
// that a client was erased here.
func TestFeedOfADump(t *testing.T) {
	t.Parallel()
	db, st := tables(t, shared.Get(t).DSN(), "dump_")
	t.Cleanup(func() {
		execute(t, db, "DROP VIEW dump_webhook; DROP TABLE dump_schema, dump_client, dump_override, dump_delivery")
	})
	apply(t, st, "acme")
	execute(t, db, "UPDATE dump_schema SET erased_chg = 9000000000000000000")
	s := &sequence{t: t, feed: st}
	s.expectReset("first poll")
	s.expect("nothing")
	before := s.next
	apply(t, st, "gone")
	s.expect("change", "gone")
	execute(t, db, "DELETE FROM dump_override WHERE client = 'gone'; UPDATE dump_client SET vacated = 1 WHERE id = 'gone'")
	execute(t, db, "INSERT INTO dump_client VALUES ('restored', 0, 0, '', 0, 0, 1, '9000000000000000000')")
	if n, err := st.Sweep(t.Context(), 10); n != 2 || err != nil {
		t.Fatalf("swept %d, %v", n, err)
	}
	s.expect("clients erased that changed before the cursor")
	s.next = before
	s.expectReset("a client erased that changed after the cursor")
	apply(t, st, "acme")
	s.expect("change", "acme")
}
