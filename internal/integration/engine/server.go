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
	"strings"
	"sync"
	"testing"
	"time"
)

// startTimeout is for servers that hang when they start or stop. On a busy machine a start
// can take a minute.
const startTimeout = 5 * time.Minute

// Server is a running database server. You can call its methods while the database is in use,
// but not two at a time.
type Server struct {
	recipe  recipe
	dsn     string // from the environment; "" if we started the server
	program program
	dir     string
	addr    string
	process *process
}

// data returns the data directory of the daemon.
func (s *Server) data() string { return s.dir + "/data" }

// start starts a server and waits until it's ready.
func start(r recipe) (*Server, error) {
	if dsn := os.Getenv(r.dsnEnv); dsn != "" {
		return &Server{recipe: r, dsn: dsn}, nil
	}
	s := &Server{recipe: r}
	if err := s.create(); err != nil {
		if r.dsnEnv != "" {
			err = fmt.Errorf("%w (set %s to the DSN of a running server)", err, r.dsnEnv)
		}
		return nil, fmt.Errorf("engine: no %s: %w", r.name, errors.Join(err, s.stop()))
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

// freeAddress returns a loopback address that nobody listens on, below the range of ephemeral
// ports.
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

// DSN returns the data source name for the engine's driver.
func (s *Server) DSN() string {
	if s.dsn != "" {
		return s.dsn
	}
	return s.recipe.dsnOf(s.addr)
}

// Via returns the data source name of the server at another address, such as a [Proxy]'s. You
// can't call it for an external server: see [Server.SkipIfExternal].
func (s *Server) Via(addr string) string { return s.recipe.dsnOf(addr) }

// Data returns the data directory, or "" for an external server.
func (s *Server) Data() string {
	if s.dsn != "" {
		return ""
	}
	return s.data()
}

// Addr returns the address of the server. You can't call it for an external server: see
// [Server.SkipIfExternal].
func (s *Server) Addr() string { return s.addr }

// SkipIfExternal skips the test if the server comes from the environment. Call it before you
// kill, freeze or proxy the server.
func (s *Server) SkipIfExternal(t testing.TB) {
	t.Helper()
	if s.dsn != "" {
		t.Skipf("the server of %s is external, and must not be disturbed", s.recipe.dsnEnv)
	}
}

// Kill kills all processes of the server at once, as a crash would.
func (s *Server) Kill() error { return s.process.kill() }

// Freeze stops all processes of the server. Connections stay open, but silent.
func (s *Server) Freeze() error { return s.process.freeze() }

// Thaw continues a frozen server.
func (s *Server) Thaw() error { return s.process.thaw() }

// IsTimeout reports whether a driver's call failed because its context's deadline passed.
// Some drivers set the deadline on the socket too. They can return the socket's error, a
// moment before the context ends.
func IsTimeout(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded)
}

// Restart starts a killed server with the same data and address, and returns when it's ready.
func (s *Server) Restart() (err error) {
	_, port, err := net.SplitHostPort(s.addr)
	if err != nil {
		return err
	}
	args, err := s.recipe.arguments(s, port)
	if err != nil {
		return err
	}
	s.process, err = launch(s.program, args, s.recipe.ready)
	return err
}

// Save copies the data directory of a killed server. It replaces an earlier copy.
func (s *Server) Save() error { return s.replaceDir(s.data(), s.saved()) }

// Restore puts the copy of [Server.Save] in place of the data directory of a killed server.
func (s *Server) Restore() error { return s.replaceDir(s.saved(), s.data()) }

func (s *Server) saved() string { return s.dir + "/saved" }

func (s *Server) replaceDir(from, to string) error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	return errors.Join(os.RemoveAll(to), s.copyDir(ctx, from, to))
}

// copyDir copies a directory with the server's rights.
func (s *Server) copyDir(ctx context.Context, from, to string) error {
	return run(ctx, s.program, "cp", strings.NewReader(""), "-a", from, to)
}

// writeFile creates a file below the server's directory that only the server can read.
func (s *Server) writeFile(path, text string) error {
	path = s.dir + "/" + path
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return err
	}
	return chownToServer(path)
}

// stop kills the server and removes its data.
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

// PostgreSQL returns a server for this test only, or the server of WEBHOOKCFG_POSTGRES_DSN.
// Its DSN is for github.com/jackc/pgx/v5.
func PostgreSQL(t testing.TB) *Server {
	t.Helper()
	return get(t, postgreSQL(true))
}

// MariaDB returns a server for this test only, or the server of WEBHOOKCFG_MARIADB_DSN. Its
// DSN is for github.com/go-sql-driver/mysql, with the settings that package sqlstore
// documents. It has a binary log, like any server with replicas.
func MariaDB(t testing.TB) *Server {
	t.Helper()
	return get(t, mariaDB("--log-bin=binary", "--sync-binlog=1"))
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
		t.Skipf("-short: test needs a %s server", r.name)
	}
}

// Shared is a server for all tests of a package that don't disturb it. The first call of
// Get starts it, and Main stops it. It runs without fsync, so use it where nothing crashes.
type Shared struct {
	recipe recipe
	once   sync.Once
	server *Server
	err    error
}

// SharedPostgreSQL returns a shared server like [PostgreSQL], but without fsync.
func SharedPostgreSQL() *Shared { return &Shared{recipe: postgreSQL(false)} }

// SharedMariaDB returns a shared server like [MariaDB], but without fsync.
func SharedMariaDB() *Shared { return &Shared{recipe: mariaDB("--debug-no-sync")} }

// Get returns the server. It is safe for concurrent use.
func (s *Shared) Get(t testing.TB) *Server {
	t.Helper()
	skipIfShort(t, s.recipe)
	s.once.Do(func() { s.server, s.err = start(s.recipe) })
	if s.err != nil {
		t.Fatal(s.err)
	}
	return s.server
}

// Own returns a server like the shared one, for this test only. You can kill its processes
// without losing data, because the system keeps everything they wrote.
func (s *Shared) Own(t testing.TB) *Server {
	t.Helper()
	return get(t, s.recipe)
}

// Main runs the tests of a package and stops the server. Pass its result to os.Exit in
// TestMain.
func (s *Shared) Main(m *testing.M) int {
	code := m.Run()
	if err := s.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return max(code, 1)
	}
	return code
}

// Stop stops the server, if a test has started it. Main calls it.
func (s *Shared) Stop() error {
	if s.server == nil {
		return nil
	}
	return s.server.stop()
}
