package engine_test

import (
	"context"
	"database/sql"
	"net/url"
	"testing"
	"time"

	"example.com/go-webhookcfg/internal/integration/engine"
)

// withCommit returns a DSN whose commits wait for a standby differently.
func withCommit(t *testing.T, dsn, mode string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("synchronous_commit", mode)
	u.RawQuery = q.Encode()
	return u.String()
}

// TestPair: acknowledged rows survive every failover, unless the standby was asynchronous.
func TestPair(t *testing.T) {
	t.Parallel()
	pair := engine.PostgreSQLPair(t)
	db := open(t, "pgx", pair.DSN())
	execute(t, db, "CREATE TABLE engine_rows (n int)")
	failover := func() {
		t.Helper()
		if err := pair.Failover(); err != nil {
			t.Fatal(err)
		}
		reopened(t, db)
	}
	for n := 1; n <= 2; n++ {
		execute(t, db, "INSERT INTO engine_rows VALUES (1)")
		failover()
		if got := count(t, db); got != n {
			t.Errorf("%d rows after failover %d", got, n)
		}
	}

	execute(t, open(t, "pgx", withCommit(t, pair.DSN(), "remote_apply")), "INSERT INTO engine_rows VALUES (1)")
	if got := count(t, open(t, "pgx", pair.Standby().DSN())); got != 3 {
		t.Errorf("%d rows on the standby, want 3", got)
	}
	pair.Detach()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := db.ExecContext(ctx, "INSERT INTO engine_rows VALUES (1)"); !engine.IsTimeout(err) {
		t.Errorf("a commit without the standby: %v, want the deadline", err)
	}
	asynchronous := open(t, "pgx", withCommit(t, pair.DSN(), "local"))
	execute(t, asynchronous, "INSERT INTO engine_rows VALUES (1)")
	failover()
	if got := count(t, db); got != 3 {
		t.Errorf("%d rows, want the 3 that the standby had", got)
	}
}

// reopened returns once a pool has dropped the connections that a server closed.
func reopened(t *testing.T, db *sql.DB) {
	t.Helper()
	for db.PingContext(t.Context()) != nil && t.Context().Err() == nil {
	}
}
