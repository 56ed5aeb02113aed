package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"sync"
	"testing"
)

// Server is a running database server. Its methods must not be called concurrently
// with each other, but beside whatever uses the database.
type Server struct {
	recipe  recipe
	dsn     string // from the environment; "" if the server is ours
	program program
	dir     string
	addr    string
	process *process
}

// data is where the daemon keeps its data.
func (s *Server) data() string { return s.dir + "/data" }

// start makes a server and waits until it can be used.
func start(r recipe) (*Server, error) {
	if dsn := os.Getenv(r.dsnEnv); dsn != "" {
		return &Server{recipe: r, dsn: dsn}, nil
	}
	s := &Server{recipe: r}
	if err := s.create(); err != nil {
		return nil, fmt.Errorf("no %s server (one that runs can be named in %s): %w",
			r.name, r.dsnEnv, errors.Join(err, s.stop()))
	}
	return s, nil
}

func (s *Server) create() (err error) {
	if s.program, err = find(s.recipe); err != nil {
		return err
	}
	if s.dir, err = privateDir(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	if err := s.recipe.prepare(ctx, s); err != nil {
		return err
	}
	for range 3 { // another process may take the port first
		if s.addr, err = freeAddress(); err != nil {
			return err
		}
		if err = s.Restart(); err == nil {
			return nil
		}
	}
	return err
}

// freeAddress returns a loopback address on which nothing listens, below the ports
// that outgoing connections get.
func freeAddress() (addr string, err error) {
	for range 50 {
		addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(15000+rand.IntN(15000)))
		var l net.Listener
		if l, err = net.Listen("tcp4", addr); err == nil {
			return addr, l.Close()
		}
	}
	return "", err
}

// DSN returns the data source name for the driver of the engine.
func (s *Server) DSN() string {
	if s.dsn != "" {
		return s.dsn
	}
	return s.recipe.dsnOf(s.addr)
}

// Via returns the data source name by which the server is reached through another
// address, such as that of a [Proxy]. The server must be [Server.SkipIfExternal].
func (s *Server) Via(addr string) string { return s.recipe.dsnOf(addr) }

// Addr returns the address of a server that is [Server.SkipIfExternal].
func (s *Server) Addr() string { return s.addr }

// SkipIfExternal skips a test that has to kill, freeze or surround the server, if the
// server is one of the environment.
func (s *Server) SkipIfExternal(t testing.TB) {
	t.Helper()
	if s.dsn != "" {
		t.Skipf("the server of %s is not ours to disturb", s.recipe.dsnEnv)
	}
}

// Kill kills the server with all its processes at once, as a crash would.
func (s *Server) Kill() error { return s.process.kill() }

// Freeze stops the server in the middle of what it does: connections stay open,
// and nothing answers.
func (s *Server) Freeze() error { return s.process.freeze() }

// Thaw lets a frozen server go on.
func (s *Server) Thaw() error { return s.process.thaw() }

// Restart starts a killed server on the same data and the same address, and
// returns once it can be used.
func (s *Server) Restart() (err error) {
	_, port, err := net.SplitHostPort(s.addr)
	if err != nil {
		return err
	}
	s.process, err = launch(s.program, append(s.recipe.arguments(s), "--port="+port), s.recipe.ready)
	return err
}

// stop ends the server and removes its data.
func (s *Server) stop() error {
	var killed error
	if s.process != nil {
		killed = s.process.kill()
	}
	if s.dir == "" {
		return killed
	}
	return cmp.Or(killed, os.RemoveAll(s.dir))
}

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
