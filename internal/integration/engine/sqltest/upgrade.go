package sqltest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

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
	Upgrade(t, db, name, statements, func() *sqlstore.Store { return e.store(t, e.Open(t, dsn), name) })
}

func (e Engine) lost(t *testing.T) {
	dsn := e.Shared(t).DSN()
	db := e.Open(t, dsn)
	name := prefix(t, db)
	open := func() *sqlstore.Store { return e.store(t, e.Open(t, dsn), name) }
	if err := open().Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	Lost(t, db, name, open)
}

// Upgrade checks a migration to the next version, of tables that another tool created with
// statements. Stores keep running meanwhile, and many start together. It also checks that
// tables of versions that were never released are refused.
func Upgrade(t *testing.T, db *sql.DB, prefix string, statements []string, open func() *sqlstore.Store) {
	t.Helper()
	for _, statement := range statements {
		execute(t, db, statement)
	}
	setVersion := func(version int) { execute(t, db, fmt.Sprintf("UPDATE %sschema SET version = %d", prefix, version)) }
	for old := 1; old < schemaVersion; old++ {
		setVersion(old)
		for _, statement := range statements { // changes nothing
			execute(t, db, statement)
		}
		expectOld(t, open(), prefix+"delivery, which loses")
	}
	setVersion(schemaVersion)
	first := open()
	state, err := upgradable(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	running, ctx := errgroup.WithContext(t.Context())
	for n := range 3 {
		st, client := open(), fmt.Sprint("running-", n)
		// A store reads the version at its first call, so this one is before the later version.
		if _, err := st.Resolve(ctx, client, "e1"); err != nil {
			t.Fatal(err)
		}
		running.Go(func() error { return runUntil(ctx, stop, st, client) })
	}
	var starting errgroup.Group
	for n := range 6 {
		st := open()
		starting.Go(func() error {
			client, d := fmt.Sprint("starting-", n), anyDelivery()
			d.LastSuccess = time.Now() // a sweep deletes it if there was no attempt
			d = inMicroseconds(d)
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
	setVersion(schemaVersion + 1) // like a process of a later version
	expectUnchanged(t, first, state)
	close(stop)
	if err := errors.Join(err, running.Wait()); err != nil {
		t.Fatal(err)
	}
	if _, err := open().Resolve(t.Context(), "kept", "e1"); !errors.Is(err, sqlstore.ErrNewerSchema) {
		t.Errorf("a store that knows only the version before: %v", err)
	}
	setVersion(schemaVersion)
	expectUnchanged(t, open(), state)
}

// Lost checks that stores name a table that's missing, and what to do, and that this works. They
// don't take it for empty, so an entity that was off stays without a webhook.
func Lost(t *testing.T, db *sql.DB, prefix string, open func() *sqlstore.Store) {
	t.Helper()
	running := open()
	at := time.Now().Truncate(time.Microsecond)
	for _, c := range []webhookcfg.Change{
		webhookcfg.SetChange("acme", webhookcfg.All(), egress.NewURL("https://hooks.example.com/")),
		webhookcfg.UnsetChange("acme", webhookcfg.Entity("off")),
	} {
		c.Time = at
		if err := running.Apply(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	for _, table := range []string{"delivery", "override", "client"} {
		execute(t, db, "DROP VIEW IF EXISTS "+prefix+"webhook")
		execute(t, db, "DROP TABLE "+prefix+table)
		calls := Calls(open())
		calls["check"] = func(ctx context.Context) error { _, err := open().Check(ctx); return err }
		calls["healthy"] = func(ctx context.Context) error { return open().Healthy(ctx) }
		for name, call := range calls {
			if err := call(t.Context()); err == nil || !strings.Contains(err.Error(), "lost: "+prefix+table+": restore it") {
				t.Errorf("%s without the table %s: %v", name, table, err)
			}
		}
		if hook, err := running.Resolve(t.Context(), "acme", "off"); table != "delivery" && err == nil {
			t.Errorf("without the table %s, the entity that's off has the source %v", table, hook.Source)
		}
		execute(t, db, "UPDATE "+prefix+"schema SET version = 0")
		if err := open().Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := open().Healthy(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// schemaVersion is the latest version of the schema.
const schemaVersion = 3

// expectOld checks that every call, including Migrate, fails and names the remedy.
func expectOld(t *testing.T, st *sqlstore.Store, remedy string) {
	t.Helper()
	for name, call := range Calls(st) {
		if err := call(t.Context()); err == nil || !strings.Contains(err.Error(), remedy) {
			t.Errorf("%s with tables of a version that was never released: %v", name, err)
		}
	}
}

// expectUnchanged checks that every call works and that a client's state is the same.
func expectUnchanged(t *testing.T, st *sqlstore.Store, state upgradeState) {
	t.Helper()
	after, err := upgradable(t.Context(), st)
	if err != nil || !samePage(after.page, state.page) || after.version != state.version {
		t.Errorf("%+v after the migration, %+v before: %v", after, state, err)
	}
	all := Calls(st)
	delete(all, "migrate")
	for name, call := range all {
		if err := call(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// upgradeState is the part of a client that a migration must not change: its configuration
// and its version.
type upgradeState struct {
	page    webhookcfg.Page
	version string
}

// upgradable returns a client's state. If it has no configuration yet, it gets one.
func upgradable(ctx context.Context, st *sqlstore.Store) (state upgradeState, err error) {
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

// runUntil changes and reads a client, and follows the feed, which must not reset.
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
