package contract_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// toolTimeout bounds each third-party program. Some take seconds to start.
const toolTimeout = 3 * time.Minute

// requireTool fails the test if a third-party program is missing.
func requireTool(t *testing.T, program string, args ...string) {
	t.Helper()
	if testing.Short() {
		t.Skipf("-short: test needs %s", program)
	}
	if out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: run internal/integration/install.sh\n%s", program, err, out)
	}
}

// packages returns a directory with the files of npm/ and the packages of its lock file. The
// packages stay in the user's cache directory, outside of the repository.
func packages(t *testing.T) (dir string) {
	t.Helper()
	requireTool(t, "node", "--eval", "process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)")
	requireTool(t, "npm", "--version")
	lock := readFile(t, filepath.Join("npm", "package-lock.json"))
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	cache = filepath.Join(cache, "webhookcfg-contract")
	installed := filepath.Join(cache, fmt.Sprintf("%.6x", sha256.Sum256([]byte(lock))))
	if _, err := os.Stat(installed); err != nil {
		install(t, cache, installed)
	}
	dir, err = os.MkdirTemp(installed, "run-") // below it, so that Node.js finds the packages
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.CopyFS(dir, os.DirFS("npm")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// install installs the packages in a temporary directory and then renames it. So an
// installation is either complete or absent.
func install(t *testing.T, cache, installed string) {
	t.Helper()
	if err := os.MkdirAll(cache, 0o755); err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp(cache, "install-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	for _, name := range []string{"package.json", "package-lock.json"} {
		write(t, filepath.Join(dir, name), []byte(readFile(t, filepath.Join("npm", name))))
	}
	// None of these packages needs its install scripts.
	npm := exec.CommandContext(t.Context(), "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier")
	npm.Dir = dir
	if out, err := npm.CombinedOutput(); err != nil {
		t.Fatalf("npm ci: %v\n%s", err, out)
	}
	if err := os.Rename(dir, installed); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// command returns a third-party program that runs in dir, ends with the test, and sends no
// telemetry.
func command(t *testing.T, dir, program string, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), toolTimeout)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	cmd.WaitDelay = 10 * time.Second
	cmd.Env = append(os.Environ(), "NO_UPDATE_NOTIFIER=1", "NO_COLOR=1", "DO_NOT_TRACK=1")
	return cmd
}

// goCommand returns a go command that takes its versions from a go.mod, not from a workspace.
func goCommand(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Env = append(os.Environ(), "GOWORK=off")
	return cmd
}

// run runs a program that must succeed, and returns its output.
func run(t *testing.T, cmd *exec.Cmd) (output string) {
	t.Helper()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", filepath.Base(cmd.Path), err, out)
	}
	return string(out)
}

// start runs a program until the test ends, and returns the first match of ready in its
// output.
func start(t *testing.T, cmd *exec.Cmd, ready *regexp.Regexp) string {
	t.Helper()
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // fails because we killed it
	})
	lines := bufio.NewReader(output)
	for {
		line, err := lines.ReadString('\n')
		if match := ready.FindString(strings.TrimSpace(line)); match != "" {
			go func() { _, _ = io.Copy(io.Discard, lines) }() // ends with the program
			return match
		}
		if err != nil {
			t.Fatalf("%s ended before it was ready: %v", filepath.Base(cmd.Path), err)
		}
	}
}

var listening = regexp.MustCompile(`http://127\.0\.0\.1:\d+$`)

// TestReadme: the README has the versions that run.
func TestReadme(t *testing.T) {
	modFile, pkg := readFile(t, "../go.mod"), struct{ DevDependencies map[string]string }{}
	if err := json.Unmarshal([]byte(readFile(t, "npm/package.json")), &pkg); err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(`(?m)^\| \[([^]]+)\]\([^)]+\) \| ([0-9.]+) \|`).FindAllStringSubmatch(readFile(t, "README.md"), -1)
	npm := 0
	for _, row := range rows {
		tool, version := row[1], row[2]
		if want := pkg.DevDependencies[tool]; want != "" {
			npm++
			if version != want {
				t.Errorf("%s: version %s, want %s", tool, version, want)
			}
			continue
		}
		if !regexp.MustCompile(`(?m)/` + tool + `(/v\d+)? v` + regexp.QuoteMeta(version) + `\b`).MatchString(modFile) {
			t.Errorf("%s: go.mod does not require version %s", tool, version)
		}
	}
	if npm != len(pkg.DevDependencies) || len(rows) < npm+3 {
		t.Errorf("%d rows, %d of them of npm", len(rows), npm)
	}
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(text), "\r\n", "\n")
}
