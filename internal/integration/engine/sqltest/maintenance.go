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
	"example.com/go-webhookcfg/store/sqlstore"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
	"golang.org/x/sync/errgroup"
)

func (e Engine) schema(t *testing.T) {
	dsn := e.Shared.Get(t).DSN()
	statements, err := e.Dialect.Schema("t_")
	if err != nil {
		t.Fatal(err)
	}
	for done := range statements {
		t.Run(fmt.Sprint(done, " of ", len(statements), " statements"), func(t *testing.T) {
			t.Parallel()
			e.halfMigrated(t, dsn, done)
		})
	}
	t.Run("newer", func(t *testing.T) { t.Parallel(); e.newerSchema(t, dsn) })
}

// halfMigrated has many replicas complete a partial migration concurrently.
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
	set := webhookcfg.Set("acme", webhookcfg.Entity("e1"), egress.NewURL("https://h.example.com/"))
	if done < len(statements)-1 { // the last statement only records the version
		expectRefused(t, e.store(t, db, name), set)
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
	if hook, err := e.store(t, db, name).Resolve(t.Context(), "acme", "e1"); err != nil || hook.Source != webhookcfg.SourceOverride {
		t.Errorf("resolve: %v, %v", hook, err)
	}
}

// expectRefused checks that a change fails, with a known outcome, where tables are
// missing.
func expectRefused(t *testing.T, st *sqlstore.Store, c webhookcfg.Change) {
	t.Helper()
	if err := st.Apply(t.Context(), c); err == nil || errors.Is(err, sqlstore.ErrOutcomeUnknown) {
		t.Errorf("a change without tables: %v, want a refusal", err)
	}
}

func (e Engine) newerSchema(t *testing.T, dsn string) {
	db := e.Open(t, dsn)
	name := prefix(t, db)
	st := e.store(t, db, name)
	migrate(t, st)
	migrate(t, st) // does nothing
	execute(t, db, "UPDATE "+name+"schema SET version = version + 1")
	if err := st.Migrate(t.Context()); !errors.Is(err, sqlstore.ErrNewerSchema) {
		t.Errorf("migrating a newer schema: %v, want ErrNewerSchema", err)
	}
}

// MigrateRefuses checks that a migration as another Engine, and with another DSN, of
// tables that this one created returns an error with a text, and that one as this Engine
// succeeds.
func (e Engine) MigrateRefuses(t *testing.T, dsn string, other Engine, otherDSN, text string) {
	t.Helper()
	db := e.Open(t, dsn)
	name := prefix(t, db)
	migrate(t, e.store(t, db, name))
	migrate(t, e.store(t, db, name))
	err := other.store(t, other.Open(t, otherDSN), name).Migrate(t.Context())
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("tables of %s as %s: %v", e.Dialect, other.Dialect, err)
	}
}

// sweep runs histories concurrently with two sweepers.
func (e Engine) sweep(t *testing.T) {
	dsn := e.Shared.Get(t).DSN()
	db := e.Open(t, dsn)
	name := prefix(t, db)
	st := e.store(t, db, name)
	migrate(t, st)
	stop := make(chan struct{})
	var sweepers errgroup.Group
	for range 2 {
		sweepers.Go(func() error { return sweepUntil(t.Context(), stop, st) })
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

func sweepUntil(ctx context.Context, stop <-chan struct{}, st *sqlstore.Store) error {
	for {
		select {
		case <-stop:
			return nil
		default:
		}
		if _, err := st.Sweep(ctx, 50); err != nil {
			return err
		}
	}
}

// sweepAll sweeps more rows than one transaction removes, and checks the tables: void
// rows are removed, all others remain.
func (e Engine) sweepAll(t *testing.T, db *sql.DB, st *sqlstore.Store, name string) {
	t.Helper()
	const many, live = 600, 3
	if err := overrides(t.Context(), st, many); err != nil {
		t.Fatal(err)
	}
	all := webhookcfg.Set("swept", webhookcfg.All(), egress.NewURL("https://h.example.com/"))
	if err := st.Apply(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	if err := overrides(t.Context(), st, live); err != nil {
		t.Fatal(err)
	}
	if void := countVoid(t, db, name); void < many {
		t.Fatalf("%d void rows before the sweep, want %d or more", void, many)
	}
	removed, err := st.Sweep(t.Context(), 10*many)
	if void := countVoid(t, db, name); err != nil || removed < many || void > 0 {
		t.Errorf("removed %d, %v; %d void rows are left", removed, err, void)
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
			c := webhookcfg.Set("swept", webhookcfg.Entity("e"+strconv.Itoa(i)), egress.NewURL(fmt.Sprint("https://h.example.com/", i)))
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
