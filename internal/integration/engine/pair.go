package engine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
)

// Pair is a PostgreSQL primary with a hot standby. A commit waits until the standby has it on
// disk. For a session with synchronous_commit=local the standby is asynchronous. With
// remote_apply, a commit waits until queries on the standby see it.
//
// You can call the methods while the database is in use, but not two at a time.
type Pair struct {
	recipe           recipe
	seed             string // directory with a copy of the primary's data, from before its first start
	primary, standby *Server
	front            *Proxy // from the clients to the primary
	link             *Proxy // from the standby to the primary
}

// PostgreSQLPair returns a pair for this test only.
func PostgreSQLPair(t testing.TB) *Pair {
	t.Helper()
	r := postgreSQL(false,
		"synchronous_standby_names=*", "wal_keep_size=1GB", "wal_retrieve_retry_interval=50ms")
	r.dsnEnv = "" // an external server isn't a pair
	skipIfShort(t, r)
	p := &Pair{recipe: r, front: NewProxy(t, ""), link: NewProxy(t, "")}
	t.Cleanup(func() {
		if err := p.stop(); err != nil {
			t.Error(err)
		}
	})
	if err := p.create(); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *Pair) create() (err error) {
	if p.seed, err = privateDir(); err != nil {
		return err
	}
	r := p.recipe
	r.prepare = func(ctx context.Context, s *Server) error {
		return errors.Join(p.recipe.prepare(ctx, s), s.copyDir(ctx, s.data(), p.seed+"/data"))
	}
	if p.primary, err = start(r); err != nil {
		return err
	}
	p.direct()
	return p.join()
}

// direct connects the clients and the standby to the primary.
func (p *Pair) direct() {
	p.front.Redirect(p.primary.addr)
	p.link.Redirect(p.primary.addr)
}

// join starts a standby, which replays everything since the seed.
func (p *Pair) join() (err error) {
	r := p.recipe
	r.prepare = p.prepareStandby
	p.standby, err = start(r)
	return err
}

func (p *Pair) prepareStandby(ctx context.Context, s *Server) error {
	if err := s.copyDir(ctx, p.seed+"/data", s.data()); err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(p.link.Addr())
	if err != nil {
		return err
	}
	conninfo := fmt.Sprintf("primary_conninfo = 'host=%s port=%s user=postgres password=%s'\n", host, port, p.recipe.password)
	for name, text := range map[string]string{"postgresql.auto.conf": conninfo, "standby.signal": ""} {
		if err := s.writeFile("data/"+name, text); err != nil {
			return err
		}
	}
	return nil
}

// DSN returns the data source name of the primary. It stays the same after a failover.
func (p *Pair) DSN() string { return p.recipe.dsnOf(p.front.Addr()) }

// Primary returns the current primary.
func (p *Pair) Primary() *Server { return p.primary }

// Standby returns the current standby.
func (p *Pair) Standby() *Server { return p.standby }

// Detach cuts the standby off from the primary, until the next failover.
func (p *Pair) Detach() { p.link.Redirect("") }

// Failover kills the primary, promotes the standby, connects the clients to it, and starts a
// new standby.
func (p *Pair) Failover() error {
	if err := p.primary.Kill(); err != nil {
		return err
	}
	if err := p.standby.promote(); err != nil {
		return err
	}
	dead := p.primary
	p.primary, p.standby = p.standby, nil
	p.direct()
	return errors.Join(dead.stop(), p.join())
}

// promote makes a standby the primary, and returns when that is done.
func (s *Server) promote() error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	return run(ctx, s.program, s.program.sibling("pg_ctl"), strings.NewReader(""),
		"promote", "--wait", fmt.Sprint("--timeout=", startTimeout.Seconds()), "-D", s.data())
}

func (p *Pair) stop() error {
	var errs []error
	for _, s := range []*Server{p.primary, p.standby} {
		if s != nil {
			errs = append(errs, s.stop())
		}
	}
	if p.seed != "" {
		errs = append(errs, os.RemoveAll(p.seed))
	}
	return errors.Join(errs...)
}
