package alerts_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/go-webhookcfg/examples/service/metrics"
	"example.com/go-webhookcfg/internal/integration/engine"
	"example.com/go-webhookcfg/store"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// dirVar is an environment variable with a directory. If it's set, this program mounts a
// small file system there, and serves the metrics of a store in it.
const dirVar = "ALERTS_TEST_DIR"

// cannotMount is the program's exit code if it isn't allowed to mount.
const cannotMount = 77

// TestFullDisk fills the disk of a store that nobody changes. An alert fires in Prometheus,
// and ends when there's space again.
func TestFullDisk(t *testing.T) {
	if dir := os.Getenv(dirVar); dir != "" {
		if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=4m"); err != nil {
			fmt.Println("cannot mount:", err)
			os.Exit(cannotMount)
		}
		serveMetrics(t, dir)
		return
	}
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFullDisk$")
	child.Env = append(os.Environ(), dirVar+"="+t.TempDir())
	child.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	commands, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Skipf("no small file system can be mounted here: %v", err)
	}
	lines := bufio.NewReader(output)
	address, err := lines.ReadString('\n')
	if err != nil || strings.HasPrefix(address, "cannot mount") {
		if err := child.Wait(); err == nil || child.ProcessState.ExitCode() != cannotMount {
			t.Fatalf("%v: %s", err, address)
		}
		t.Skipf("no small file system can be mounted here: %s", address)
	}
	alerts := startPrometheus(t, strings.TrimSpace(address))
	for _, step := range []struct{ command, want string }{
		{"", ""}, {"fill\n", "WebhookPartFails store firing"}, {"free\n", ""},
	} {
		if _, err := io.WriteString(commands, step.command); err != nil {
			t.Fatal(err)
		}
		for got := alerts(); got != step.want; got = alerts() {
			select {
			case <-t.Context().Done():
				t.Fatalf("after %q the alerts are %q, want %q", step.command, got, step.want)
			case <-time.After(50 * time.Millisecond):
			}
		}
	}
	if err := commands.Close(); err != nil {
		t.Error(err)
	}
	rest, _ := io.ReadAll(lines)
	if err := child.Wait(); err != nil {
		t.Errorf("%v: %s", err, rest)
	}
}

// serveMetrics prints its address. It fills the disk and frees space when it's told to.
func serveMetrics(t *testing.T, dir string) {
	file, err := store.OpenFile(filepath.Join(dir, "webhooks.jsonl"), nil)
	if err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	m, err := metrics.NewMetrics(registry)
	if err == nil {
		err = m.Watch("store", file)
	}
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := http.Server{Handler: promhttp.HandlerFor(registry, promhttp.HandlerOpts{})}
	go func() { _ = server.Serve(listener) }()
	fmt.Println(listener.Addr())
	other := filepath.Join(dir, "other")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		switch lines.Text() {
		case "fill":
			err = os.WriteFile(other, make([]byte, 3584<<10), 0o600)
		case "free":
			err = os.Remove(other)
		}
		if err != nil {
			t.Error(err)
		}
	}
	if err := errors.Join(server.Close(), file.Close()); err != nil {
		t.Error(err)
	}
}

// startPrometheus starts Prometheus with the rules, but with short durations. It returns a
// function that lists the alerts.
func startPrometheus(t *testing.T, target string) (alerts func() string) {
	t.Helper()
	rules := regexp.MustCompile(`(?m)^        for: .*$`).ReplaceAllString(read(t, "alerts.yml"), "        for: 1s")
	daemon := engine.Daemon{Paths: []string{"usr/bin/prometheus"}, Package: "prometheus", Configure: func(i engine.Instance) ([]string, error) {
		config, err := i.Write("prometheus.yml", `
global: {scrape_interval: 200ms, scrape_timeout: 200ms, evaluation_interval: 200ms}
rule_files: [alerts.yml]
scrape_configs: [{job_name: service, static_configs: [{targets: ["`+target+`"]}]}]
`)
		if err == nil {
			_, err = i.Write("alerts.yml", rules)
		}
		return []string{
			"--config.file=" + config, "--storage.tsdb.path=" + filepath.Join(i.Dir, "data"),
			"--web.listen-address=127.0.0.1:" + i.Port, "--log.level=warn",
		}, err
	}}
	address := daemon.Start(t)
	return func() string {
		resp, err := http.Get("http://" + address + "/api/v1/alerts")
		if err != nil {
			return err.Error()
		}
		defer resp.Body.Close()
		var list struct {
			Data struct {
				Alerts []struct {
					Labels map[string]string
					State  string
				}
			}
		}
		if err := json.NewDecoder(resp.Body).Decode(&list); err != nil {
			return err.Error()
		}
		var all []string
		for _, a := range list.Data.Alerts {
			all = append(all, a.Labels["alertname"]+" "+a.Labels["part"]+" "+a.State)
		}
		return strings.Join(all, ", ")
	}
}
