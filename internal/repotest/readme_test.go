package repotest_test

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestReadmeProgram: the program in the README is the example that is compiled
// and tested.
func TestReadmeProgram(t *testing.T) {
	readme := read(t, "README.md")
	_, rest, found := strings.Cut(readme, "```go\n")
	program, _, closed := strings.Cut(rest, "```\n")
	if !found || !closed {
		t.Fatal("no program in the README")
	}
	source := read(t, filepath.Join("examples", "quickstart", "main.go"))
	if _, source, _ = strings.Cut(source, "package main\n"); program != "package main\n"+source {
		t.Error("the program in the README is not examples/quickstart")
	}
}

// TestReadmeCommands: the README names the commands that every change must pass.
func TestReadmeCommands(t *testing.T) {
	readme, n := read(t, "README.md"), 0
	for line := range strings.Lines(read(t, ".ci/run")) {
		if command := strings.TrimSpace(line); strings.HasPrefix(command, "make ") {
			n++
			if !strings.Contains(readme, "`"+command+"`") {
				t.Errorf("the README doesn't name %q", command)
			}
		}
	}
	if n == 0 {
		t.Error(".ci/run calls make nowhere")
	}
}
