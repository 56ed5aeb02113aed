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

// recipe is how to make a server of one engine.
type recipe struct {
	name   string
	dsnVar string // the variable of the environment that names a running server

	programs []string // patterns of the daemon's path below a root
	packages string   // a regular expression of the names of the Debian package that has it

	prepare   func(ctx context.Context, s *Server) error // makes the data folder
	arguments func(s *Server) []string
	ready     string // what the daemon writes once it can be used
	dsnOf     func(addr string) string
}

// data is where the daemon keeps its data.
func (s *Server) data() string { return s.dir + "/data" }

// start makes a server and waits until it can be used.
func start(r recipe) (*Server, error) {
	if dsn := os.Getenv(r.dsnVar); dsn != "" {
		return &Server{recipe: r, dsn: dsn}, nil
	}
	s := &Server{recipe: r}
	if err := s.create(); err != nil {
		return nil, fmt.Errorf("no %s server (one that runs can be named in %s): %w",
			r.name, r.dsnVar, errors.Join(err, s.stop()))
	}
	return s, nil
}

func (s *Server) create() (err error) {
	if s.program, err = find(s.recipe); err != nil {
		return err
	}
	if s.dir, err = privateFolder(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
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
// address, such as that of a [Proxy]. The server must be [Server.Owned].
func (s *Server) Via(addr string) string { return s.recipe.dsnOf(addr) }

// Addr returns the address of a server that is [Server.Owned].
func (s *Server) Addr() string { return s.addr }

// Owned skips a test that has to kill, freeze or surround the server, if the
// server is one of the environment.
func (s *Server) Owned(t testing.TB) {
	t.Helper()
	if s.dsn != "" {
		t.Skipf("the server of %s is not ours to disturb", s.recipe.dsnVar)
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
