package postgres

import (
	"database/sql"
	"errors"
	"testing"
	"time"

	"example.com/go-webhookcfg/internal/integration/engine"
	"example.com/go-webhookcfg/internal/integration/engine/sqltest"
	"example.com/go-webhookcfg/store/sqlstore"
	"example.com/go-webhookcfg/webhookcfg"
)

// Ways to commit: don't wait for a standby, or wait until its queries see the change.
var (
	local    = having("synchronous_commit", "local")
	replayed = having("synchronous_commit", "remote_apply")
)

// TestPair: a synchronous standby loses nothing. Copies drop anything that an asynchronous
// one loses. Reads from a standby are refused.
func TestPair(t *testing.T) {
	t.Parallel()
	pair := engine.PostgreSQLPair(t)
	t.Run("standby", func(t *testing.T) { testStandby(t, pair) })
	postgreSQL().Failover(t, pair)
	asynchronous := postgreSQL()
	asynchronous.Open = sqltest.Driver("pgx", local)
	asynchronous.LostChange(t, pair.DSN(), func() error {
		// Once the standby has replayed this commit, it has replayed all before.
		applied := sqltest.Driver("pgx", replayed)(t, pair.DSN())
		_, err := applied.ExecContext(t.Context(), "SELECT pg_logical_emit_message(true, 'barrier', '')")
		pair.Detach()
		return err
	}, pair.Failover)
}

func testStandby(t *testing.T, pair *engine.Pair) {
	const prefix = "standby_"
	_, st := tables(t, replayed(t, pair.DSN()), prefix)
	standby := sqltest.Driver("pgx")(t, pair.Standby().DSN())
	open := func(db *sql.DB) *sqlstore.Store {
		st, err := sqlstore.New(db, sqlstore.PostgreSQL(), &sqlstore.Options{Prefix: prefix})
		if err != nil {
			t.Fatal(err)
		}
		return st
	}
	apply(t, st, "acme")

	t.Run("refused", func(t *testing.T) {
		refused := open(standby)
		for name, call := range sqltest.Calls(refused) {
			if err := call(t.Context()); !errors.Is(err, sqlstore.ErrStandby) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
	t.Run("demoted", func(t *testing.T) {
		proxy := engine.NewProxy(t, pair.Primary().Addr())
		st := open(sqltest.Driver("pgx")(t, pair.Primary().Via(proxy.Addr())))
		reads := map[string]func() error{
			"resolve":  func() error { _, err := st.Resolve(t.Context(), "acme", "e1"); return err },
			"unknown":  func() error { _, err := st.Resolve(t.Context(), "unknown", "e1"); return err },
			"list":     func() error { _, err := st.List(t.Context(), "acme", "", 1); return err },
			"load":     func() error { _, err := st.LoadDelivery(t.Context(), "acme", webhookcfg.All()); return err },
			"versions": func() error { _, err := st.Versions(t.Context(), []string{"acme"}); return err },
			"changes":  func() error { _, err := st.Changes(t.Context(), ""); return err },
		}
		for name, read := range reads {
			if err := read(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		proxy.Redirect(pair.Standby().Addr())
		for name, read := range reads {
			var err error
			// Other errors come from lost connections.
			if !eventually(time.Minute, func() bool { err = read(); return err == nil || errors.Is(err, sqlstore.ErrStandby) }) || err == nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// eventually calls done until it returns true, or returns false if that takes too long.
func eventually(most time.Duration, done func() bool) bool {
	for start := time.Now(); time.Since(start) < most; {
		if done() {
			return true
		}
	}
	return false
}
