package main

import (
	"bytes"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"example.com/go-webhookcfg/internal/integration/engine"
)

const queueWorkers = 128

// queueRate compares the deliveries of examples/service, from a queue on each of its engines,
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
	r.section("Delivery from a queue", fmt.Sprintf(`Deliveries per second of wall-clock time with %d workers, receiver in the same process:
[examples/service](../../../examples/service) with a backlog of %s in River, and Send in a loop.`, queueWorkers, grouped(backlog)))
	r.table([]string{"queue on", "examples/service", "budget", "Send in a loop"}, rows...)
	return nil
}

// newDatabase returns the data source name of a new database of a PostgreSQL server, which
// is dropped when the test ends.
func newDatabase(t *testing.T, dsn string) string {
	t.Helper()
	const name = "bench_queue"
	admin := (&sqlDatabase{driver: "pgx", dsn: dsn}).connect(t)
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

// buildService builds examples/service in a directory, and returns its path.
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

var deliveredRate = regexp.MustCompile(`(?m)^delivered .*: (\d+)/s$`)

// serviceRate has examples/service deliver a number of notifications.
func serviceRate(program, store string, n int) (rate float64, err error) {
	var stderr bytes.Buffer
	run := exec.Command(program, "-migrate", "-dev", "-workers", strconv.Itoa(queueWorkers), "backlog", strconv.Itoa(n))
	run.Env = append(os.Environ(), "STORE="+store, "CLIENT=acme:"+clientSecret, "MASTER="+strings.Repeat("m", 64))
	run.Stderr = &stderr
	run.WaitDelay = time.Second
	out, err := run.Output()
	if err != nil {
		return 0, fmt.Errorf("run examples/service: %w\n%s", err, &stderr)
	}
	found := deliveredRate.FindSubmatch(out)
	if found == nil {
		return 0, fmt.Errorf("examples/service printed no rate: %q", out)
	}
	return strconv.ParseFloat(string(found[1]), 64)
}
