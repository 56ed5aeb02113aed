package repotest_test

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
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

// TestReadmeBlocks: the README has no block that no test runs. The console session is
// run by the test of examples/quickstart.
func TestReadmeBlocks(t *testing.T) {
	var languages []string
	for i, block := range strings.Split(read(t, "README.md"), "\n```") {
		if i%2 == 1 {
			language, _, _ := strings.Cut(block, "\n")
			languages = append(languages, language)
		}
	}
	if want := []string{"go", "console"}; !slices.Equal(languages, want) {
		t.Errorf("the README has the blocks %q, want %q", languages, want)
	}
}

// TestReadmeSize: the README is a front page. Measurements belong to
// internal/integration/bench, whose README the measuring command writes.
func TestReadmeSize(t *testing.T) {
	const maxReadmeLines, maxColumns = 170, 100
	measured := regexp.MustCompile(`(?i)^\|.*(\bbudget\b|\bratio\b|\d (ns|µs|ms|MiB)\b|/s\b)`)
	lines := strings.Split(strings.TrimSuffix(read(t, "README.md"), "\n"), "\n")
	if len(lines) > maxReadmeLines {
		t.Errorf("the README has %d lines, at most %d are allowed", len(lines), maxReadmeLines)
	}
	for i, line := range lines {
		if n := utf8.RuneCountInString(line); n > maxColumns {
			t.Errorf("README.md:%d has %d columns, at most %d are allowed", i+1, n, maxColumns)
		}
		if measured.MatchString(line) {
			t.Errorf("README.md:%d is a row of measurements", i+1)
		}
	}
}
