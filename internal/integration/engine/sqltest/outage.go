package sqltest

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"example.com/go-webhookcfg/internal/integration/engine"
	"example.com/go-webhookcfg/store/sqlstore"
	"example.com/go-webhookcfg/webhookcfg"
)

// outages are those that pass, after which the store goes on by itself.
func (e Engine) outages(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: no server is frozen")
	}
	server := e.Own(t)
	server.Owned(t)
	t.Run("frozen", func(t *testing.T) { e.frozen(t, server) })
	t.Run("read-only", func(t *testing.T) { e.readOnly(t, server) })
	t.Run("handler", func(t *testing.T) { e.handler(t, server) })
}

// frozen has every call end with its context, though nothing answers.
func (e Engine) frozen(t *testing.T, server *engine.Server) {
	st := e.fresh(t, server.DSN())
	c := anyChange("acme", 1)
	if err := st.Apply(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if err := server.Freeze(); err != nil {
		t.Fatal(err)
	}
	for name, call := range calls(st) {
		if err := ends(t, call); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s, of a frozen server: %v", name, err)
		}
	}
	if err := server.Thaw(); err != nil {
		t.Fatal(err)
	}
	for name, call := range calls(st) {
		if err := call(t.Context()); err != nil {
			t.Errorf("%s, after the server went on: %v", name, err)
		}
	}
}

// calls are those that a store answers.
func calls(st *sqlstore.Store) map[string]func(context.Context) error {
	all := map[string]func(context.Context) error{
		"set all":   func(ctx context.Context) error { return st.Apply(ctx, changesOf("acme")[1]) },
		"set":       func(ctx context.Context) error { return st.Apply(ctx, changesOf("acme")[0]) },
		"unset":     func(ctx context.Context) error { return st.Apply(ctx, changesOf("acme")[2]) },
		"unset all": func(ctx context.Context) error { return st.Apply(ctx, changesOf("acme")[3]) },
		"resolve":   func(ctx context.Context) error { _, err := st.Resolve(ctx, "acme", "e1"); return err },
		"list":      func(ctx context.Context) error { _, err := st.List(ctx, "acme", "", 10); return err },
		"versions":  func(ctx context.Context) error { _, err := st.Versions(ctx, []string{"acme"}); return err },
		"sweep":     func(ctx context.Context) error { _, err := st.Sweep(ctx, 10); return err },
		"migrate":   st.Migrate,
	}
	if feed, err := st.WithFeed(); err == nil {
		all["changes"] = func(ctx context.Context) error { _, err := feed.Changes(ctx, ""); return err }
	}
	return all
}

// patience is how long after its context a call may end, at most: a bound for calls
// that would never.
const patience = 20 * time.Second

// ends makes a call that has little time, and fails the test if it takes for ever.
func ends(t *testing.T, call func(context.Context) error) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- call(ctx) }()
	select {
	case err := <-ended:
		return err
	case <-time.After(patience):
		t.Fatal("a call outlived its context by far")
		return nil
	}
}

// readOnly has changes refused for certain, as by a standby, and reads answered.
func (e Engine) readOnly(t *testing.T, server *engine.Server) {
	admin := e.open(t, server.DSN())
	admin.SetMaxOpenConns(1)
	name := prefix(t, e.open(t, server.DSN()))
	db := e.open(t, e.AsUser(t, admin, server.DSN()))
	db.SetMaxIdleConns(-1) // what the server refuses is decided when a connection begins
	st := e.store(t, db, name)
	migrate(t, st)
	if err := st.Apply(t.Context(), changesOf("acme")[0]); err != nil {
		t.Fatal(err)
	}
	before := look(t, st)
	e.ReadOnly(t, admin, true)
	for i, c := range changesOf("acme") {
		if err := st.Apply(t.Context(), c); err == nil || errors.Is(err, sqlstore.ErrOutcomeUnknown) {
			t.Errorf("to change %d a database that takes none answered %v", i, err)
		}
	}
	if now := look(t, st); !reflect.DeepEqual(now, before) {
		t.Errorf("what was refused led from %+v to %+v", before, now)
	}
	e.ReadOnly(t, admin, false)
	if err := st.Apply(t.Context(), changesOf("acme")[3]); err != nil {
		t.Errorf("afterwards: %v", err)
	}
	if now := look(t, st); len(now.Overrides) > 0 {
		t.Errorf("afterwards an unset of all left %+v", now)
	}
}

func look(t *testing.T, st *sqlstore.Store) webhookcfg.Page {
	t.Helper()
	page, err := st.List(t.Context(), "acme", "", 10)
	if err != nil {
		t.Fatal(err)
	}
	return page
}
