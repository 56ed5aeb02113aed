package postgres

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/go-webhookcfg/internal/integration/engine"
	"example.com/go-webhookcfg/internal/integration/engine/sqltest"
	"example.com/go-webhookcfg/store/sqlstore"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/lib/pq"
)

// TestModes uses modes of pgx other than the default, cache_statement. They send values
// differently. TestPgBouncer uses a third one.
func TestModes(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"cache_describe", "simple_protocol"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			e := postgreSQL()
			e.Open = sqltest.Driver("pgx", having("default_query_exec_mode", mode))
			e.Run(t, "Values", "Deliveries", "Feed")
		})
	}
}

// TestPool uses pgx's own pool. Its connections outlive those of package database/sql.
func TestPool(t *testing.T) {
	t.Parallel()
	e := postgreSQL()
	e.Open, e.OneKind = openPool, true
	e.ReadOnly = nil
	e.Run(t, "Values", "Deliveries", "Feed", "LostConnections", "Outages")
}

func openPool(t testing.TB, dsn string) *sql.DB {
	t.Helper()
	db, _ := newPool(t, dsn)
	return db
}

func newPool(t testing.TB, dsn string) (*sql.DB, *pgxpool.Pool) {
	t.Helper()
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	config.MaxConns = sqltest.PoolSize
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	db := stdlib.OpenDBFromPool(pool)
	t.Cleanup(func() { _ = db.Close() })
	return db, pool
}

// TestCheckOfAPool: who has a pgxpool and does what Check says keeps the pool's connections for
// other queries, and gets no warning again.
func TestCheckOfAPool(t *testing.T) {
	t.Parallel()
	direct := shared.Get(t).DSN()
	tables(t, direct, "pool_")
	db, pool := newPool(t, direct)
	st, err := sqlstore.New(db, sqlstore.PostgreSQL(), &sqlstore.Options{Prefix: "pool_"})
	if err != nil {
		t.Fatal(err)
	}
	warned := func() bool {
		warnings, err := st.Check(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(warnings, func(w string) bool { return strings.Contains(w, "as pgxpool does, call SetMaxOpenConns only") })
	}
	if !warned() {
		t.Error("no warning says what to do with a pgxpool")
	}
	db.SetMaxOpenConns(sqltest.PoolSize)
	if warned() {
		t.Error("the warning is still there")
	}
	var inUse []*sql.Conn
	for range sqltest.PoolSize {
		conn, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		inUse = append(inUse, conn)
	}
	for _, conn := range inUse {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
	if n := pool.Stat().AcquiredConns(); n > 0 {
		t.Errorf("%d connections are missing in the pool", n)
	}
}

// TestLibPQ uses lib/pq with deadlines for its connections. They're short in the tests where
// a connection becomes silent, because a call can fail there at any time.
func TestLibPQ(t *testing.T) {
	t.Parallel()
	e := postgreSQL()
	e.OneKind, e.Late = true, true
	e.Open = libPQ(time.Minute)
	e.Run(t, "Values", "Deliveries", "Feed", "CommitErrors")
	e.Open = libPQ(10 * time.Second)
	e.Run(t, "Outages")
	e.Open, e.Direct = libPQ(2*time.Second), libPQ(time.Minute)
	e.Run(t, "LostConnections", "Overtaking")
}

// libPQ returns a function that opens connections, and gives a server that much time to be
// silent. In a service, choose more than the time that a change may wait for a lock.
func libPQ(silence time.Duration) func(t testing.TB, dsn string) *sql.DB {
	return func(t testing.TB, dsn string) *sql.DB {
		t.Helper()
		connector, err := pq.NewConnector(dsn)
		if err != nil {
			t.Fatal(err)
		}
		connector.Dialer(deadlineDialer{silence: silence})
		db := sql.OpenDB(connector)
		t.Cleanup(func() { _ = db.Close() })
		db.SetMaxOpenConns(sqltest.PoolSize)
		db.SetMaxIdleConns(sqltest.PoolSize)
		return db
	}
}

// deadlineDialer is a [pq.Dialer] whose connections are never silent for long.
type deadlineDialer struct {
	net.Dialer
	silence time.Duration
}

// Dial implements [pq.Dialer].
func (d deadlineDialer) Dial(network, address string) (net.Conn, error) {
	return d.DialContext(context.Background(), network, address)
}

// DialTimeout implements [pq.Dialer].
func (d deadlineDialer) DialTimeout(network, address string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return d.DialContext(ctx, network, address)
}

// DialContext implements [pq.DialerContext].
func (d deadlineDialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := d.Dialer.DialContext(ctx, network, address)
	return deadlineConn{conn, d.silence}, err
}

// deadlineConn is a connection with a deadline for each call.
type deadlineConn struct {
	net.Conn
	silence time.Duration
}

// Read implements [net.Conn].
func (c deadlineConn) Read(p []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(c.silence)); err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}

// Write implements [net.Conn].
func (c deadlineConn) Write(p []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(c.silence)); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// TestPgBouncer uses a pooler in transaction mode, in modes that don't prepare statements.
func TestPgBouncer(t *testing.T) {
	t.Parallel()
	bouncer := engine.PgBouncer(t, shared.Get(t))
	e := postgreSQL()
	e.Shared = func(testing.TB) *engine.Server { return bouncer }
	e.Open, e.OneKind = sqltest.Driver("pgx", having("default_query_exec_mode", "exec")), true
	e.Denied = nil // the pooler knows only one user
	e.Run(t, "Values", "Upgrade", "Deliveries", "Feed")
	e.Open = sqltest.Driver("pgx", having("default_query_exec_mode", "exec"), withoutCancels)
	e.Run(t, "LostConnections", "Overtaking")
}

// withoutCancels returns a data source name for connections that send no cancel requests. If
// such a request loses its connection, PgBouncer 1.18 exits:
// https://github.com/pgbouncer/pgbouncer/issues/801.
func withoutCancels(t testing.TB, dsn string) string {
	t.Helper()
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	dial := config.DialFunc
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return cancelFilter{conn}, nil
	}
	name := stdlib.RegisterConnConfig(config)
	t.Cleanup(func() { stdlib.UnregisterConnConfig(name) })
	return name
}

// cancelFilter is a connection that refuses to send a cancel request.
type cancelFilter struct{ net.Conn }

// Write implements [net.Conn].
func (c cancelFilter) Write(p []byte) (int, error) {
	const code = 80877102 // of CancelRequest, in the message formats of PostgreSQL
	if len(p) == 16 && binary.BigEndian.Uint32(p[4:]) == code {
		return 0, errors.New("cancel request refused")
	}
	return c.Conn.Write(p)
}

// TestPgBouncerLibPQ: lib/pq works behind a pooler if it sends a statement together with its
// values.
func TestPgBouncerLibPQ(t *testing.T) {
	t.Parallel()
	bouncer := engine.PgBouncer(t, shared.Get(t))
	e := postgreSQL()
	e.Shared = func(testing.TB) *engine.Server { return bouncer }
	e.Open, e.OneKind = sqltest.Driver("postgres", having("binary_parameters", "yes")), true
	e.Denied = nil // the pooler knows only one user
	e.Run(t, "Values", "Deliveries", "Feed")
}
