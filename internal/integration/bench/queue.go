package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const queueWorkers = 128

// queueRate compares the deliveries of examples/notify, from a queue on SQLite, with Send in
// a loop.
func (s settings) queueRate(r *report) error {
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
	backlog := min(s.loaded, 10_000)
	var queue float64
	err = inTempDir(func(dir string) (err error) {
		queue, err = notifyRate(dir, backlog)
		return err
	})
	if err != nil {
		return err
	}
	r.section("Delivery from a queue", fmt.Sprintf(`Deliveries per second of wall-clock time with %d workers, receiver in the same process:
[examples/notify](../../../examples/notify) with a backlog of %s in River on SQLite, and Send in a loop.`, queueWorkers, grouped(backlog)))
	r.table([]string{"examples/notify, SQLite", "budget", "Send in a loop"},
		[]string{rounded(queue) + "/s", "≥ 1000/s", rounded(float64(n)/elapsed.Seconds()) + "/s"})
	return nil
}

var deliveredRate = regexp.MustCompile(`(?m)^delivered .*: (\d+)/s$`)

// notifyRate builds examples/notify in a directory, and has it deliver a number of
// notifications.
func notifyRate(dir string, n int) (rate float64, err error) {
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "example.com/go-webhookcfg").Output()
	if err != nil {
		return 0, fmt.Errorf("find the root module: %w", err)
	}
	program := filepath.Join(dir, "notify")
	build := exec.Command("go", "build", "-o", program, ".")
	build.Dir = filepath.Join(strings.TrimSpace(string(root)), "examples", "notify")
	if out, err := build.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("build examples/notify: %w\n%s", err, out)
	}
	var stderr bytes.Buffer
	run := exec.Command(program, "-store", "sqlite:"+filepath.Join(dir, "queue.db"), "-migrate", "-dev",
		"-workers", strconv.Itoa(queueWorkers), "backlog", strconv.Itoa(n))
	run.Env = append(os.Environ(), "CLIENT=acme:"+clientSecret, "MASTER="+strings.Repeat("m", 64))
	run.Stderr = &stderr
	run.WaitDelay = time.Second
	out, err := run.Output()
	if err != nil {
		return 0, fmt.Errorf("run examples/notify: %w\n%s", err, &stderr)
	}
	found := deliveredRate.FindSubmatch(out)
	if found == nil {
		return 0, fmt.Errorf("examples/notify printed no rate: %q", out)
	}
	return strconv.ParseFloat(string(found[1]), 64)
}
