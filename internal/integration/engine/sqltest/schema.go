package sqltest

import (
	"errors"
	"fmt"
	"testing"

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

// halfMigrated has many replicas migrate at once what somebody had begun.
func (e Engine) halfMigrated(t *testing.T, dsn string, done int) {
	db := e.open(t, dsn)
	name := prefix(t, db)
	statements, err := e.Dialect.Schema(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range statements[:done] {
		execute(t, db, statement)
	}
	set := webhookcfg.Set("acme", webhookcfg.Entity("e1"), egress.NewURL("https://h.example.com/"))
	if done < len(statements)-1 { // the last one only says that all is there
		refuse(t, e.store(t, db, name), set)
	}
	var group errgroup.Group
	for range 12 {
		replica := e.store(t, e.open(t, dsn), name)
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

// refuse has a change fail, for certain, where tables are missing.
func refuse(t *testing.T, st *sqlstore.Store, c webhookcfg.Change) {
	t.Helper()
	if err := st.Apply(t.Context(), c); err == nil || errors.Is(err, sqlstore.ErrOutcomeUnknown) {
		t.Errorf("without its tables, a store answered to a change: %v", err)
	}
}

func (e Engine) newerSchema(t *testing.T, dsn string) {
	db := e.open(t, dsn)
	name := prefix(t, db)
	st := e.store(t, db, name)
	migrate(t, st)
	migrate(t, st) // what is there stays
	execute(t, db, "UPDATE "+name+"schema SET version = version + 1")
	if err := st.Migrate(t.Context()); !errors.Is(err, sqlstore.ErrNewerSchema) {
		t.Errorf("to the schema of a later version the answer is %v", err)
	}
}
