package repotest_test

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// full builds the program in each way. Without it, one way has to do.
var full = flag.Bool("full", false, "run long tests in full, and not a sample")

// TestWaysToConsume builds the program of the README in a module of its own, in each
// way that doc.go describes, as long as this module has no public home.
func TestWaysToConsume(t *testing.T) {
	build := func(flags string) string {
		if *full {
			return "go build " + flags + "-o service ."
		}
		return "go list " + flags + "-deps ." // finds all packages, and compiles none
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	module := readModFile(t).Module.Path
	required := "module example.org/service\n\ngo 1.26.0\n"
	replaced := required + "\nrequire " + module + " v0.0.0\n\nreplace " + module + " => " + filepath.ToSlash(here) + "\n"
	for _, tt := range []struct {
		name, mod string
		commands  []string
	}{
		{"replace", replaced, []string{"go mod tidy", "go build -o service ."}},
		{"workspace", required, []string{"go work init . CLONE", build("")}},
		{"vendor", replaced, []string{"go mod tidy", "go mod vendor", build("-mod=vendor ")}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write(t, filepath.Join(dir, "go.mod"), tt.mod)
			write(t, filepath.Join(dir, "main.go"), read(t, filepath.Join("examples", "quickstart", "main.go")))
			for _, command := range tt.commands {
				words := strings.Fields(command)
				if i := slices.Index(words, "CLONE"); i >= 0 {
					words[i] = here
				}
				run(t, dir, words...)
			}
			if tt.name == "vendor" {
				vendored, err := os.ReadFile(filepath.Join(dir, "vendor", "modules.txt"))
				if err != nil || !strings.Contains(string(vendored), module) {
					t.Errorf("nothing is vendored: %v", err)
				}
			}
		})
	}
}

// run runs a command of a host that has nothing but the modules downloaded here.
func run(t *testing.T, dir string, command ...string) {
	t.Helper()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=", "GOFLAGS=-buildvcs=false", "GOPROXY=off", "GOSUMDB=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(command, " "), err, out)
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
