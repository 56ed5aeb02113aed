package contract_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(text), "\r\n", "\n")
}
