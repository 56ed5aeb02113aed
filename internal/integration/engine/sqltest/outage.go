package sqltest

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/go-webhookcfg/internal/integration/engine"
	"example.com/go-webhookcfg/internal/integration/outage"
	"example.com/go-webhookcfg/store/sqlstore"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
)

// outages tests temporary outages. The store must recover by itself.
func (e Engine) outages(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: no server is frozen")
	}
	server := e.Unsynced(t)
	server.SkipIfExternal(t)
	t.Run("frozen", func(t *testing.T) { e.frozen(t, server) })
	if e.Late {
		return // the others expect the error of a context
	}
	if e.ReadOnly != nil {
		t.Run("read-only", func(t *testing.T) { e.readOnly(t, server) })
	}
	t.Run("slow", func(t *testing.T) { e.slow(t, server) })
	t.Run("service", func(t *testing.T) { e.service(t, server) })
}

// service runs the handler during outages of its database.
func (e Engine) service(t *testing.T, server *engine.Server) {
	st := e.fresh(t, server.DSN())
	must := func(do func() error) func() {
		return func() {
			if err := do(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, o := range map[string]outage.Outage{
		"killed": {Start: must(server.Kill), End: must(server.Restart)},
		"frozen": {Start: must(server.Freeze), End: must(server.Thaw), Hangs: true},
	} {
		t.Run(name, func(t *testing.T) { outage.New(t, st).Survives(o) })
	}
}

// frozen checks that every call ends with its context while the server is frozen.
func (e Engine) frozen(t *testing.T, server *engine.Server) {
	st := e.fresh(t, server.DSN())
	c := anyChange("acme", 1)
	if err := st.Apply(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if err := server.Freeze(); err != nil {
		t.Fatal(err)
	}
	var calling sync.WaitGroup
	for name, call := range Calls(st) {
		calling.Go(func() {
			if err := ends(t, call); err == nil || !e.Late && !engine.IsTimeout(err) {
				t.Errorf("%s, server frozen: %v", name, err)
			}
		})
	}
	calling.Wait()
	if err := server.Thaw(); err != nil {
		t.Fatal(err)
	}
	for name, call := range Calls(st) {
		if err := call(t.Context()); err != nil {
			t.Errorf("%s, server continued: %v", name, err)
		}
	}
}

// Calls returns a call of each method of a store.
func Calls(st *sqlstore.Store) map[string]func(context.Context) error {
	all := map[string]func(context.Context) error{
		"set all":   func(ctx context.Context) error { return st.Apply(ctx, changesOf("acme")[1]) },
		"set":       func(ctx context.Context) error { return st.Apply(ctx, changesOf("acme")[0]) },
		"unset":     func(ctx context.Context) error { return st.Apply(ctx, changesOf("acme")[2]) },
		"unset all": func(ctx context.Context) error { return st.Apply(ctx, changesOf("acme")[3]) },
		"resolve":   func(ctx context.Context) error { _, err := st.Resolve(ctx, "acme", "e1"); return err },
		"list":      func(ctx context.Context) error { _, err := st.List(ctx, "acme", "", 10); return err },
		"versions":  func(ctx context.Context) error { _, err := st.Versions(ctx, []string{"acme"}); return err },
		"clients":   func(ctx context.Context) error { _, err := st.ListClients(ctx, "", 10); return err },
		"erase":     func(ctx context.Context) error { return st.Erase(ctx, "acme") },
		"sweep":     func(ctx context.Context) error { _, err := st.Sweep(ctx, 10); return err },
		"load":      func(ctx context.Context) error { _, err := st.LoadDelivery(ctx, "acme", webhookcfg.All()); return err },
		"save": func(ctx context.Context) error {
			return st.SaveDelivery(ctx, "acme", webhookcfg.Entity("e1"), deliver.Record{LastSuccess: time.Now()})
		},
		"migrate": st.Migrate,
	}
	ended, end := context.WithCancel(context.Background())
	end() // the server may be frozen
	if _, err := st.Changes(ended, ""); !errors.Is(err, errors.ErrUnsupported) {
		all["changes"] = func(ctx context.Context) error { _, err := st.Changes(ctx, ""); return err }
	}
	return all
}

// callTimeout is how much longer than its context a call may take. Then we assume that it
// never ends.
const callTimeout = time.Minute

// ends makes a call with a short deadline and returns its error. If the call doesn't end, the
// test fails, and the error is nil.
func ends(t *testing.T, call func(context.Context) error) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- call(ctx) }()
	select {
	case err := <-ended:
		return err
	case <-time.After(callTimeout):
		t.Error("a call long outlived its context")
		return nil
	}
}

// readOnly checks that changes fail with a known outcome. Reads must succeed, unless being
// read-only makes the server a standby.
func (e Engine) readOnly(t *testing.T, server *engine.Server) {
	admin := e.Open(t, server.DSN())
	admin.SetMaxOpenConns(1)
	name := prefix(t, e.Open(t, server.DSN()))
	db := e.Open(t, e.AsUser(t, admin, server.DSN()))
	db.SetMaxIdleConns(-1) // the server decides that when a connection starts
	st := e.store(t, db, name)
	migrate(t, st)
	isStandby := e.Dialect == sqlstore.MySQL()
	outage.New(t, st).Survives(outage.Outage{
		Start: func() {
			e.ReadOnly(t, admin, true)
			for i, c := range changesOf("acme") {
				err := st.Apply(t.Context(), c)
				if err == nil || errors.Is(err, sqlstore.ErrOutcomeUnknown) || !strings.Contains(err.Error(), e.NoWrites) {
					t.Errorf("change %d on a read-only database: %v, want a refusal with %s", i, err, e.NoWrites)
				}
			}
			if _, err := st.Resolve(t.Context(), "acme", "e1"); errors.Is(err, sqlstore.ErrStandby) != isStandby {
				t.Errorf("a read from a read-only database: %v", err)
			}
		},
		End:    func() { e.ReadOnly(t, admin, false) },
		Cause:  "sqlstore: ",
		Serves: !isStandby,
	})
}

// slow locks the client's row, so that changes wait for it.
func (e Engine) slow(t *testing.T, server *engine.Server) {
	db := e.Open(t, server.DSN())
	name := prefix(t, db)
	st := e.store(t, db, name)
	migrate(t, st)
	var holder *sql.Tx
	outage.New(t, st).Survives(outage.Outage{
		Start: func() {
			var err error
			if holder, err = db.BeginTx(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			if _, err := holder.ExecContext(t.Context(), "SELECT gen FROM "+name+"client FOR UPDATE"); err != nil {
				t.Fatal(err)
			}
		},
		End: func() {
			if err := holder.Rollback(); err != nil {
				t.Fatal(err)
			}
		},
		Hangs:   true,
		Serves:  true,
		Healthy: true,
	})
}

func list(t *testing.T, st *sqlstore.Store) webhookcfg.Page {
	t.Helper()
	page, err := st.List(t.Context(), "acme", "", 10)
	if err != nil {
		t.Fatal(err)
	}
	return page
}
