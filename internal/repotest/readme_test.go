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
