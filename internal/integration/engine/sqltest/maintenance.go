package sqltest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"example.com/go-webhookcfg/internal/integration/linearizable"
	"example.com/go-webhookcfg/internal/integration/outage"
	"example.com/go-webhookcfg/store/sqlstore"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
	"golang.org/x/sync/errgroup"
)

func (e Engine) schema(t *testing.T) {
	dsn := e.Shared(t).DSN()
	statements, err := e.Dialect.Schema("t_")
	if err != nil {
		t.Fatal(err)
	}
	for done := range len(statements) + 1 {
		t.Run(fmt.Sprint(done, " of ", len(statements), " statements"), func(t *testing.T) {
			t.Parallel()
			e.halfMigrated(t, dsn, done)
		})
	}
	for _, version := range []int{0, -1} {
		t.Run(fmt.Sprint("version ", version), func(t *testing.T) { t.Parallel(); e.olderSchema(t, dsn, version) })
	}
	t.Run("newer", func(t *testing.T) { t.Parallel(); e.newerSchema(t, dsn) })
	t.Run("service", func(t *testing.T) { t.Parallel(); e.otherSchema(t, dsn) })
}

// halfMigrated lets many replicas complete a partial migration at the same time.
func (e Engine) halfMigrated(t *testing.T, dsn string, done int) {
	db := e.Open(t, dsn)
	name := prefix(t, db)
	statements, err := e.Dialect.Schema(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range statements[:done] {
		execute(t, db, statement)
	}
	set := webhookcfg.SetChange("acme", webhookcfg.Entity("e1"), egress.NewURL("https://h.example.com/"))
	early := e.store(t, db, name)
	if done < len(statements) {
		expectRefused(t, early)
	} else {
		for name, call := range Calls(early) {
			if err := call(t.Context()); err != nil {
				t.Errorf("%s after the statements of Schema: %v", name, err)
			}
		}
	}
	var group errgroup.Group
	for range 12 {
		replica := e.store(t, e.Open(t, dsn), name)
		group.Go(func() error {
			if err := replica.Migrate(t.Context()); err != nil {
				return err
			}
			return replica.Apply(t.Context(), set)
		})
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
	for _, st := range []*sqlstore.Store{early, e.store(t, db, name)} {
		if hook, err := st.Resolve(t.Context(), "acme", "e1"); err != nil || hook.Source != webhookcfg.SourceOverride {
			t.Errorf("resolve: %v, %v", hook, err)
		}
	}
}

// expectRefused checks that every call fails while the store can't use the schema. Changes
// must have a known outcome.
func expectRefused(t *testing.T, st *sqlstore.Store) {
	t.Helper()
	all := Calls(st)
	delete(all, "migrate")
	for name, call := range all {
		if err := call(t.Context()); err == nil || errors.Is(err, sqlstore.ErrOutcomeUnknown) {
			t.Errorf("%s with another schema: %v, want a refusal", name, err)
		}
	}
}

// olderSchema checks that tables of an older version are refused until you migrate them.
func (e Engine) olderSchema(t *testing.T, dsn string, version int) {
	db := e.Open(t, dsn)
	name := prefix(t, db)
	migrate(t, e.store(t, db, name))
	execute(t, db, fmt.Sprintf("UPDATE %sschema SET version = %d", name, version))
	st := e.store(t, db, name)
	expectRefused(t, st)
	migrate(t, st)
	st = e.store(t, db, name)
	if err := st.Apply(t.Context(), anyChange("acme", 1)); err != nil {
		t.Errorf("after the migration: %v", err)
	}
}

func (e Engine) newerSchema(t *testing.T, dsn string) {
	db := e.Open(t, dsn)
	name := prefix(t, db)
	st := e.store(t, db, name)
	migrate(t, st)
	migrate(t, st) // does nothing
	execute(t, db, "UPDATE "+name+"schema SET version = version + 1")
	statements, err := e.Dialect.Schema(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range statements { // changes nothing
		execute(t, db, statement)
	}
	if err := st.Migrate(t.Context()); !errors.Is(err, sqlstore.ErrNewerSchema) {
		t.Errorf("migrating a newer schema: %v, want ErrNewerSchema", err)
	}
	newer := e.store(t, db, name)
	expectRefused(t, newer)
	if err := newer.Apply(t.Context(), anyChange("acme", 1)); !errors.Is(err, sqlstore.ErrNewerSchema) {
		t.Errorf("a change in a newer schema: %v, want ErrNewerSchema", err)
	}
}

// otherSchema checks that no request is served while the tables are incomplete or of a later
// version, and that the store recovers when another process has changed that.
func (e Engine) otherSchema(t *testing.T, dsn string) {
	db := e.Open(t, dsn)
	name := prefix(t, db)
	statements, err := e.Dialect.Schema(name)
	if err != nil {
		t.Fatal(err)
	}
	other := e.store(t, e.Open(t, dsn), name)
	s := outage.New(t, e.store(t, db, name))
	s.Refuses(outage.Outage{Cause: "tables are missing: " + name + "schema"})
	for _, statement := range statements[:len(statements)/2] {
		execute(t, db, statement)
	}
	s.Refuses(outage.Outage{})
	migrate(t, other)
	s.Works()
	execute(t, db, "UPDATE "+name+"schema SET version = version + 1")
	s = outage.New(t, e.store(t, db, name))
	s.Refuses(outage.Outage{Cause: sqlstore.ErrNewerSchema.Error()})
	execute(t, db, "UPDATE "+name+"schema SET version = version - 1")
	s.Works()
}

// Refuses checks that every call fails on tables that you altered with statements, or with
// another DSN. The error of Migrate must contain text.
func (e Engine) Refuses(t *testing.T, statements []string, dsn, text string) {
	t.Helper()
	db := e.Open(t, e.Shared(t).DSN())
	name := prefix(t, db)
	migrate(t, e.store(t, db, name))
	for _, statement := range statements {
		execute(t, db, strings.ReplaceAll(statement, "{prefix}", name))
	}
	st := e.store(t, e.Open(t, dsn), name)
	if err := st.Migrate(t.Context()); err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("Migrate: %v, want %s", err, text)
	}
	expectRefused(t, st)
}

// sweep runs histories together with two sweepers, which delete a client's row as soon as it
// has nothing set.
func (e Engine) sweep(t *testing.T) {
	dsn := e.Shared(t).DSN()
	db := e.Open(t, dsn)
	name := prefix(t, db)
	st := e.store(t, db, name)
	migrate(t, st)
	stop := make(chan struct{})
	var sweepers errgroup.Group
	for range 2 {
		sweepers.Go(func() error { return sweepUntil(t.Context(), stop, st, func() { _ = age(t.Context(), db, name) }) })
	}
	linearizable.Check(t, hot(), func(t testing.TB) []linearizable.Store {
		return []linearizable.Store{st, e.store(t, e.Open(t, dsn), name)}
	})
	close(stop)
	if err := sweepers.Wait(); err != nil {
		t.Error(err)
	}
	e.sweepAll(t, db, st, name)
}

// sweepUntil sweeps, and calls prepare before each sweep.
func sweepUntil(ctx context.Context, stop <-chan struct{}, st *sqlstore.Store, prepare func()) error {
	for {
		select {
		case <-stop:
			return nil
		default:
		}
		prepare()
		if _, err := st.Sweep(ctx, 50); err != nil {
			return err
		}
	}
}

// sweepAll sweeps more rows than one transaction deletes. Then it checks that the obsolete
// rows are gone and all others are still there.
func (e Engine) sweepAll(t *testing.T, db *sql.DB, st *sqlstore.Store, name string) {
	t.Helper()
	const many, live = 600, 3
	if err := overrides(t.Context(), st, many); err != nil {
		t.Fatal(err)
	}
	all := webhookcfg.SetChange("swept", webhookcfg.All(), egress.NewURL("https://h.example.com/"))
	if err := st.Apply(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	if err := overrides(t.Context(), st, live); err != nil {
		t.Fatal(err)
	}
	if void := countVoid(t, db, name); void < many {
		t.Fatalf("%d obsolete rows before the sweep, want %d or more", void, many)
	}
	removed, err := st.Sweep(t.Context(), 10*many)
	if void := countVoid(t, db, name); err != nil || removed < many || void > 0 {
		t.Errorf("removed %d, %v; %d obsolete rows are left", removed, err, void)
	}
	page, err := st.List(t.Context(), "swept", "", many)
	if err != nil || len(page.Overrides) != live || page.Base.Source != webhookcfg.SourceBase {
		t.Errorf("%d overrides are left, want %d; base from %v; %v", len(page.Overrides), live, page.Base.Source, err)
	}
}

// overrides sets n overrides.
func overrides(ctx context.Context, st *sqlstore.Store, n int) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(8)
	for i := range n {
		group.Go(func() error {
			c := webhookcfg.SetChange("swept", webhookcfg.Entity("e"+strconv.Itoa(i)), egress.NewURL(fmt.Sprint("https://h.example.com/", i)))
			c.Time = time.Unix(1, 0)
			return st.Apply(ctx, c)
		})
	}
	return group.Wait()
}

func countVoid(t *testing.T, db *sql.DB, name string) (n int) {
	t.Helper()
	query := fmt.Sprintf("SELECT COUNT(*) FROM %soverride o JOIN %sclient c ON c.id = o.client AND o.gen < c.gen", name, name)
	if err := db.QueryRowContext(t.Context(), query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
