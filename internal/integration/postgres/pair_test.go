package postgres

import (
	"testing"

	"example.com/go-webhookcfg/internal/integration/engine"
	"example.com/go-webhookcfg/internal/integration/engine/sqltest"
)

// TestFailover: a synchronous standby loses nothing, and what an asynchronous one loses is
// not kept by copies.
func TestFailover(t *testing.T) {
	t.Parallel()
	pair := engine.PostgreSQLPair(t)
	synchronous, asynchronous := postgreSQL(), postgreSQL()
	asynchronous.Open = sqltest.Driver("pgx", having("synchronous_commit", "local"))
	synchronous.Failover(t, asynchronous, pair)
	asynchronous.LostChange(t, pair.DSN(), func() error {
		// A commit that the standby has replayed follows all others.
		applied := sqltest.Driver("pgx", having("synchronous_commit", "remote_apply"))(t, pair.DSN())
		_, err := applied.ExecContext(t.Context(), "SELECT pg_logical_emit_message(true, 'barrier', '')")
		pair.Detach()
		return err
	}, pair.Failover)
}
