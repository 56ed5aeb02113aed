// Package operator_test runs examples/admin as an operator would, on servers.
package operator_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/internal/integration/engine"
	"example.com/go-webhookcfg/internal/integration/etcdcluster"
	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
	"github.com/go-sql-driver/mysql"
)

func TestMain(m *testing.M) {
	etcdcluster.RunMember()
	os.Exit(m.Run())
}

// token is in the path of every URL.
const token = "t0ken-7d1e"

// program is the built program, with the secrets that it must never write.
type program struct {
	path    string
	secrets []string
}

func build(t *testing.T) program {
	path := filepath.Join(t.TempDir(), "admin")
	command := exec.CommandContext(t.Context(), "go", "build", "-o", path, ".")
	command.Dir = "../../../examples/admin"
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return program{path, []string{token}}
}

// run runs the program with an input. It checks the exit code, and that both outputs contain
// the given texts.
func (p program) run(t *testing.T, stdin string, code int, stdout, stderr string, args ...string) string {
	t.Helper()
	var out, diagnostics bytes.Buffer
	command := exec.CommandContext(t.Context(), p.path, args...)
	command.Stdin, command.Stdout, command.Stderr = strings.NewReader(stdin), &out, &diagnostics
	err := command.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if got := command.ProcessState.ExitCode(); got != code || !strings.Contains(out.String(), stdout) || !strings.Contains(diagnostics.String(), stderr) {
		t.Errorf("%v: exit code %d, want %d\nstdout: %sstderr: %s", args, got, code, &out, &diagnostics)
	}
	for _, secret := range p.secrets {
		if strings.Contains(out.String()+diagnostics.String(), secret) {
			t.Errorf("%v shows a secret: %s%s", args, &out, &diagnostics)
		}
	}
	return out.String()
}

// server has the address of a store on a server, and functions that stop and start the
// server.
type server struct {
	name, address string
	kill, restart func() error
}

// start starts the servers, and adds their passwords to the secrets.
func start(t *testing.T, p *program) []server {
	postgres, mariadb := engine.PostgreSQL(t), engine.MariaDB(t)
	dsn, err := url.Parse(postgres.DSN())
	if err != nil {
		t.Fatal(err)
	}
	config, err := mysql.ParseDSN(mariadb.DSN())
	if err != nil {
		t.Fatal(err)
	}
	password, _ := dsn.User.Password()
	p.secrets = append(p.secrets, password, config.Passwd)
	cluster := etcdcluster.Start(t, 1, etcdcluster.Options{})
	return []server{
		{"postgres", postgres.DSN(), postgres.Kill, postgres.Restart},
		{"mysql", "mysql:" + mariadb.DSN(), mariadb.Kill, mariadb.Restart},
		{
			"etcd", "etcd:" + cluster.Client(t).Endpoints()[0],
			func() error { cluster.Kill(0); return nil },
			func() error { return errors.Join(cluster.Restart(0), cluster.Await(t.Context(), 0)) },
		},
	}
}

// TestServers copies a file store through all servers and back, and runs every command on
// each of them.
func TestServers(t *testing.T) {
	p := build(t)
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return "file:" + filepath.Join(dir, name) }
	file, err := store.OpenFile(filepath.Join(dir, "webhooks"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 20 {
		client := fmt.Sprintf("client-%02d", n)
		hooktest.Apply(t, file,
			hooktest.At(n+1, webhookcfg.SetChange(client, webhookcfg.All(), egress.NewURL("https://hooks.example.com/"+token))),
			hooktest.At(n+2, webhookcfg.SetChange(client, webhookcfg.Entity("e1"), egress.NewURL("https://e1.example.com/"+token))),
			hooktest.Unset(client, "e2", n+3))
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	source := at("webhooks")
	for _, s := range start(t, &p) {
		t.Run(s.name, func(t *testing.T) {
			p.run(t, "", 0, "20 clients with 60 webhooks, 60 changes", "", "copy", "-migrate", source, s.address)
			p.run(t, "", 0, "different: 0", "", "verify", source, s.address)
			p.run(t, "", 0, "client-00\n", "", "clients", s.address)
			p.run(t, "", 0, "default: https://hooks.example.com since", "", "list", s.address, "client-01")
			p.run(t, "", 0, "entity e1: override https://e1.example.com since", "", "show", s.address, "client-01", "e1")
			p.run(t, "", 0, "", "", "audit", s.address)
			p.run(t, "", 0, "is healthy", "", "health", s.address)
			p.run(t, "https://new.example.com/"+token, 0, "", "actor=olga", "set", "-no-probe", "-actor", "olga", s.address, "client-01", "e3")
			p.run(t, "", 3, "different: 1", "", "verify", source, s.address)
			p.run(t, "client-01\n", 0, "", "actor=olga", "unset", "-all", "-actor", "olga", s.address, "client-01")
			p.run(t, "client-02\n", 0, "erased client-02", "", "erase", s.address, "client-02")
			p.run(t, "", 0, "", "", "list", s.address, "client-02")
			p.run(t, "", 1, "", "has webhooks already", "copy", source, s.address)
			p.run(t, nameOf(t, p, s.address), 0, "60 webhooks, 6 changes", "", "copy", "-replace", source, s.address)
			if s.name == "etcd" { // the tables of a database would be missing
				for _, args := range [][]string{
					{"clients", s.address}, {"health", s.address}, {"check", s.address}, {"audit", s.address}, {"erase", s.address, "client-03"}, {"verify", s.address, source}, {"copy", "-migrate", s.address, at("nothing")},
				} {
					p.run(t, "client-03\n", 1, "", " with the prefix other/ has nothing: check the address and -prefix", append([]string{args[0], "-prefix", "other/"}, args[1:]...)...)
				}
			}
			export := at(s.name)
			p.run(t, "", 0, "60 changes", "", "copy", "-migrate", s.address, export)
			if want, got := content(t, p, dir, "webhooks"), content(t, p, dir, s.name); got != want {
				t.Errorf("the export differs: %d bytes, want %d", len(got), len(want))
			}

			if err := s.kill(); err != nil {
				t.Fatal(err)
			}
			p.run(t, "", 1, "", "admin: ", "health", s.address)
			p.run(t, "", 1, "", "can't be used", "copy", source, s.address)
			if err := s.restart(); err != nil {
				t.Fatal(err)
			}
			p.run(t, "", 0, "is healthy", "", "health", s.address)
			p.run(t, "", 0, "different: 0", "", "verify", source, s.address)
		})
	}
}

// nameOf returns the name that you type to confirm that a store should be replaced.
func nameOf(t *testing.T, p program, address string) string {
	t.Helper()
	name, _, _ := strings.Cut(p.run(t, "", 0, "is healthy", "", "health", address), " is healthy")
	return name
}

// content returns the content of a file store without superseded changes.
func content(t *testing.T, p program, dir, name string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	backup := filepath.Join(t.TempDir(), "private", name)
	if err := os.Mkdir(filepath.Dir(backup), 0o700); err != nil {
		t.Fatal(err)
	}
	p.run(t, "", 0, "is a copy of", "", "backup", "file:"+path, "file:"+backup)
	text, err := os.ReadFile(backup)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
