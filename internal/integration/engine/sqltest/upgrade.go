package sqltest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"example.com/go-webhookcfg/store/sqlstore"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
	"golang.org/x/sync/errgroup"
)

func (e Engine) upgrade(t *testing.T) {
	dsn := e.Shared(t).DSN()
	db := e.Open(t, dsn)
	name := prefix(t, db)
	statements, err := e.Dialect.Schema(name)
	if err != nil {
		t.Fatal(err)
	}
	Upgrade(t, db, statements, func() *sqlstore.Store { return e.store(t, e.Open(t, dsn), name) })
}

// Upgrade checks the migration of tables of version 1, which another tool created, while
// stores that found version 1 keep running, and many that need the latest start together. The
// statements are those of the dialect for the tables.
func Upgrade(t *testing.T, db *sql.DB, statements []string, open func() *sqlstore.Store) {
	t.Helper()
	for _, statement := range statements[:withoutDeliveries(statements)] {
		execute(t, db, statement)
	}
	first := open()
	state, err := upgradable(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	running, ctx := errgroup.WithContext(t.Context())
	for n := range 3 {
		st := open()
		expectWithoutDeliveries(t, st)
		running.Go(func() error { return runUntil(ctx, stop, st, fmt.Sprint("running-", n)) })
	}
	var starting errgroup.Group
	for n := range 6 {
		st := open()
		starting.Go(func() error {
			client, d := fmt.Sprint("starting-", n), inSeconds(anyDelivery())
			if err := errors.Join(st.Migrate(t.Context()), st.SaveDelivery(t.Context(), client, webhookcfg.All(), d)); err != nil {
				return err
			}
			got, err := st.LoadDelivery(t.Context(), client, webhookcfg.All())
			if err == nil && got != d {
				err = fmt.Errorf("loaded %+v, want %+v", got, d)
			}
			return err
		})
	}
	err = starting.Wait()
	close(stop)
	if err := errors.Join(err, running.Wait()); err != nil {
		t.Fatal(err)
	}
	for name, st := range map[string]*sqlstore.Store{"found version 1": first, "new": open()} {
		after, err := upgradable(t.Context(), st)
		if err != nil || !reflect.DeepEqual(after, state) {
			t.Errorf("%s: %+v after the migration, %+v before: %v", name, after, state, err)
		}
		for call, do := range Calls(st) {
			if err := do(t.Context()); err != nil {
				t.Errorf("%s: %s: %v", name, call, err)
			}
		}
	}
}

// withoutDeliveries returns the number of the statements of version 1.
func withoutDeliveries(statements []string) int {
	return slices.IndexFunc(statements, func(s string) bool { return strings.Contains(s, "delivery") })
}

// expectWithoutDeliveries checks that tables of version 1 are used, but for deliveries.
func expectWithoutDeliveries(t *testing.T, st *sqlstore.Store) {
	t.Helper()
	all := Calls(st)
	delete(all, "migrate")
	for name, call := range all {
		err := call(t.Context())
		if deliveries := name == "load" || name == "save"; (err != nil) != deliveries || deliveries && !strings.Contains(err.Error(), "Migrate") {
			t.Errorf("%s with tables of version 1: %v", name, err)
		}
	}
}

// upgradable returns what a migration must not change: the configuration of a client and its
// version. It makes the configuration first, if there is none.
func upgradable(ctx context.Context, st *sqlstore.Store) (state struct {
	page    webhookcfg.Page
	version string
}, err error,
) {
	if state.page, err = st.List(ctx, "kept", "", 10); err != nil {
		return state, err
	}
	if state.page.Base.Source == webhookcfg.SourceNone {
		for _, c := range []webhookcfg.Change{
			webhookcfg.SetChange("kept", webhookcfg.All(), egress.NewURL("https://h.example.com/base")),
			webhookcfg.SetChange("kept", webhookcfg.Entity("e1"), egress.NewURL("https://h.example.com/e1")),
			webhookcfg.UnsetChange("kept", webhookcfg.Entity("e2")),
		} {
			if err := st.Apply(ctx, c); err != nil {
				return state, err
			}
		}
	}
	if state.page, err = st.List(ctx, "kept", "", 10); err != nil {
		return state, err
	}
	versions, err := st.Versions(ctx, []string{"kept"})
	if err == nil {
		state.version = versions[0]
	}
	return state, err
}

// runUntil makes changes of a client and reads them, and follows the feed without a reset.
func runUntil(ctx context.Context, stop <-chan struct{}, st *sqlstore.Store, client string) error {
	changes, err := st.Changes(ctx, "")
	hasFeed := !errors.Is(err, errors.ErrUnsupported)
	if err != nil && hasFeed {
		return err
	}
	for n := 1; ; n++ {
		select {
		case <-stop:
			return nil
		default:
		}
		c := webhookcfg.SetChange(client, webhookcfg.Entity("e1"), egress.NewURL(fmt.Sprint("https://h.example.com/", n)))
		if err := st.Apply(ctx, c); err != nil {
			return err
		}
		hook, err := st.Resolve(ctx, client, "e1")
		if err != nil || !hook.URL.Equal(c.URL) {
			return fmt.Errorf("resolved %v after change %d: %w", hook, n, err)
		}
		if _, err := st.Sweep(ctx, 10); err != nil {
			return err
		}
		if !hasFeed {
			continue
		}
		if changes, err = st.Changes(ctx, changes.Next); err != nil || changes.Reset || !slices.Contains(changes.Clients, client) {
			return fmt.Errorf("changes after change %d: %+v: %w", n, changes, err)
		}
	}
}
