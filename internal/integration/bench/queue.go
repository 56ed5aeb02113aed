package main

import (
	"bufio"
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	"golang.org/x/sync/errgroup"

	"example.com/go-webhookcfg/internal/integration/engine"
)

const queueWorkers = 128

// queueRate compares the deliveries of examples/service, with a queue on each of its engines,
// with Send in a loop.
func (s settings) queueRate(t *testing.T, r *report) error {
	receiver := newReceiver("http")
	defer receiver.Close()
	send, err := receiver.sender(queueWorkers)
	if err != nil {
		return err
	}
	n, elapsed, err := callFor(4*s.turn, queueWorkers, send)
	if err != nil {
		return err
	}
	program, err := buildService(t.TempDir())
	if err != nil {
		return err
	}
	backlog, loop := min(s.loaded, 10_000), rounded(float64(n)/elapsed.Seconds())+"/s"
	var rows [][]string
	add := func(engine, store, budget string) error {
		rate, err := serviceRate(program, store, backlog)
		rows = append(rows, []string{engine, rounded(rate) + "/s", budget, loop})
		return err
	}
	if err := add("SQLite", "sqlite:"+filepath.Join(t.TempDir(), "queue.db"), "≥ 1000/s"); err != nil {
		return err
	}
	if s.shared {
		if err := add("PostgreSQL", newDatabase(t, engine.PostgreSQL(t).DSN()), "≥ 2500/s"); err != nil {
			return err
		}
	}
	r.section("Delivery from a queue", fmt.Sprintf(`Deliveries per second of wall-clock time to one receiver, with %d workers.
[examples/service](../../../examples/service) has a backlog of %s in River. Compare it with
Send in a loop.`, queueWorkers, grouped(backlog)))
	r.table([]string{"queue on", "examples/service", "budget", "Send in a loop"}, rows...)
	return nil
}

// newDatabase creates a database on a PostgreSQL server, and returns its data source name.
// The database is dropped when the test ends.
func newDatabase(t *testing.T, dsn string) string {
	t.Helper()
	const name = "bench_queue"
	admin, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = admin.Close() })
	drop := func() {
		if _, err := admin.Exec("DROP DATABASE IF EXISTS " + name + " WITH (FORCE)"); err != nil {
			t.Error(err)
		}
	}
	drop()
	t.Cleanup(drop)
	if _, err := admin.Exec("CREATE DATABASE " + name); err != nil {
		t.Fatal(err)
	}
	at, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	at.Path = "/" + name
	return at.String()
}

// buildService builds examples/service in a directory, and returns the program's path.
func buildService(dir string) (program string, err error) {
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "example.com/go-webhookcfg").Output()
	if err != nil {
		return "", fmt.Errorf("find the root module: %w", err)
	}
	program = filepath.Join(dir, "service")
	build := exec.Command("go", "build", "-o", program, ".")
	build.Dir = filepath.Join(strings.TrimSpace(string(root)), "examples", "service")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build examples/service: %w\n%s", err, out)
	}
	return program, nil
}

// serviceRate measures how fast examples/service delivers n notifications to one receiver. It
// fills the queue while the receiver keeps the only worker waiting, and then starts the
// service with all workers.
func serviceRate(program, store string, n int) (rate float64, err error) {
	arrived, release := make(chan time.Time, n), make(chan struct{})
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-release
		w.WriteHeader(http.StatusNoContent)
		arrived <- time.Now()
	}))
	defer receiver.Close()
	p, err := startService(program, store, "-migrate", "-workers", "1", "-timeout", "30s")
	if err != nil {
		return 0, err
	}
	if err := errors.Join(p.fill("acme", receiver.URL, n), p.stop()); err != nil {
		close(release)
		return 0, errors.Join(err, p.wait())
	}
	close(release)
	if err := p.wait(); err != nil {
		return 0, err
	}
	waiting := n - len(arrived)
	for len(arrived) > 0 {
		<-arrived
	}
	workers := strconv.Itoa(queueWorkers)
	if p, err = startService(program, store, "-workers", workers, "-per-client", workers, "-per-receiver", workers); err != nil {
		return 0, err
	}
	first := <-arrived
	last := first
	for range waiting - 1 {
		last = <-arrived
	}
	return float64(waiting) / last.Sub(first).Seconds(), errors.Join(p.stop(), p.wait())
}

// process is a running examples/service.
type process struct {
	cmd     *exec.Cmd
	stderr  bytes.Buffer
	url     string
	secrets map[string]string
}

// startService starts examples/service, and returns once it's listening.
func startService(program, store string, flags ...string) (*process, error) {
	secrets, err := secretsOf(program, store)
	if err != nil {
		return nil, err
	}
	p := &process{secrets: secrets, cmd: exec.Command(program, append([]string{"-listen", "127.0.0.1:0", "-dev"}, flags...)...)}
	p.cmd.Env = append(os.Environ(), "STORE="+store, "MASTER="+strings.Repeat("m", 64))
	p.cmd.Stderr = &p.stderr
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	address, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		return nil, errors.Join(err, p.wait())
	}
	p.url = "http://" + strings.TrimSpace(address)
	return p, nil
}

// added has the clients' secrets in each store.
var added sync.Map

// secretsOf adds the clients to a store, unless it has them, and returns their secrets.
func secretsOf(program, store string) (map[string]string, error) {
	if known, ok := added.Load(store); ok {
		return known.(map[string]string), nil
	}
	secrets := map[string]string{}
	for _, client := range slices.Concat([]string{"acme"}, flooding, alone, sharing) {
		output, err := exec.Command(program, "-migrate", "-store", store, "add", client).Output()
		if err != nil {
			return nil, fmt.Errorf("add %s: %w", client, err)
		}
		_, secrets[client], _ = strings.Cut(strings.TrimSpace(string(output)), ":")
	}
	added.Store(store, secrets)
	return secrets, nil
}

// fill sets the webhook for all modules of a client, and changes n of the modules.
func (p *process) fill(client, receiver string, n int) error {
	if err := p.set(client, receiver); err != nil {
		return err
	}
	var callers errgroup.Group
	callers.SetLimit(16)
	for i := range n {
		callers.Go(func() error { return p.callAs(client, http.MethodPut, fmt.Sprint("/api/v1/modules/e", i), "on") })
	}
	return callers.Wait()
}

// set sets the webhook for all modules of a client.
func (p *process) set(client, receiver string) error {
	return p.callAs(client, http.MethodPost, "/api/v1/configure/configure-webhook", fmt.Sprintf(`{"webhook_url":%q}`, receiver))
}

func (p *process) callAs(client, method, path, body string) error {
	r, err := http.NewRequest(method, p.url+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	r.SetBasicAuth(client, p.secrets[client])
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: %s", method, path, resp.Status)
	}
	return nil
}

// stop asks the process to stop, and returns once it accepts no more connections. The process
// ends when its attempts have ended.
func (p *process) stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	for {
		conn, err := net.Dial("tcp", strings.TrimPrefix(p.url, "http://"))
		if err != nil {
			return nil
		}
		conn.Close()
		time.Sleep(10 * time.Millisecond)
	}
}

// end kills the process if it's still running.
func (p *process) end() {
	if p.cmd.ProcessState == nil {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	}
}

func (p *process) wait() error {
	if err := p.cmd.Wait(); err != nil {
		return fmt.Errorf("examples/service: %w\n%s", err, &p.stderr)
	}
	return nil
}
