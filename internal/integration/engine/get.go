package engine

import (
	"fmt"
	"os"
	"sync"
	"testing"
)

// PostgreSQL returns a server that the test has to itself, unless it is the one of
// WEBHOOKCFG_POSTGRES_DSN. Its DSN is for github.com/jackc/pgx/v5.
func PostgreSQL(t testing.TB) *Server {
	t.Helper()
	return get(t, postgreSQL(true))
}

// MariaDB returns a server that the test has to itself, unless it is the one of
// WEBHOOKCFG_MARIADB_DSN. Its DSN is for github.com/go-sql-driver/mysql. It keeps a
// binary log, like every server that has replicas.
func MariaDB(t testing.TB) *Server {
	t.Helper()
	return get(t, mariaDB("--log-bin=binary", "--sync-binlog=1"))
}

// MariaDBWithoutBinaryLog is like [MariaDB], but shows changes to others before they
// are on the disk: a crash can take back what somebody has seen. What it has
// acknowledged stays.
func MariaDBWithoutBinaryLog(t testing.TB) *Server {
	t.Helper()
	return get(t, mariaDB())
}

func get(t testing.TB, r recipe) *Server {
	t.Helper()
	skipIfShort(t, r)
	s, err := start(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func skipIfShort(t testing.TB, r recipe) {
	t.Helper()
	if testing.Short() {
		t.Skipf("-short: no test that needs a %s server is run", r.name)
	}
}

// Shared is one server for the tests of a package that do not disturb it. It is
// started for the first test that asks, and stopped by Main. It does not wait for
// the disk: that is for tests in which nothing crashes.
type Shared struct {
	recipe recipe
	once   sync.Once
	server *Server
	err    error
}

// SharedPostgreSQL is a server like that of [PostgreSQL], but for fsync.
func SharedPostgreSQL() *Shared { return &Shared{recipe: postgreSQL(false)} }

// SharedMariaDB is a server like that of [MariaDB], but for fsync.
func SharedMariaDB() *Shared { return &Shared{recipe: mariaDB("--debug-no-sync")} }

// Get returns the server; it is safe for concurrent use.
func (s *Shared) Get(t testing.TB) *Server {
	t.Helper()
	skipIfShort(t, s.recipe)
	s.once.Do(func() { s.server, s.err = start(s.recipe) })
	if s.err != nil {
		t.Fatal(s.err)
	}
	return s.server
}

// Main runs the tests of a package and stops the server; TestMain gives what it
// returns to os.Exit.
func (s *Shared) Main(m *testing.M) int {
	code := m.Run()
	if s.server == nil {
		return code
	}
	if err := s.server.stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return max(code, 1)
	}
	return code
}
