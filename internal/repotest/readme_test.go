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

// TestReadmeCommands: the curl lines in the README are those that the example
// server prints.
func TestReadmeCommands(t *testing.T) {
	readme := read(t, "README.md")
	server := read(t, filepath.Join("examples", "server", "main.go"))
	_, commands, _ := strings.Cut(server, "export CLIENT=%[1]s:%[2]s HOOKS=http://%[3]s%[4]s\n")
	commands, _, _ = strings.Cut(commands, "`")
	if strings.Count(commands, "curl ") != 4 || !strings.Contains(readme, "```sh\n"+commands+"```\n") {
		t.Errorf("the README does not have the lines that the example server prints:\n%s", commands)
	}
}

// TestReadmeBlocks: every block of the README is one of those that the tests here
// compile or run, or a picture.
func TestReadmeBlocks(t *testing.T) {
	known := map[string]func(block string) bool{
		"mermaid": func(string) bool { return true }, // in words below it
		"go":      compiled(t),
		"sh": func(block string) bool {
			return strings.HasPrefix(block, "curl ") || block == "go run ./examples/server\n"
		},
	}
	blocks := strings.Split(read(t, "README.md"), "\n```")
	if len(blocks) < 9 || len(blocks)%2 == 0 {
		t.Fatalf("%d pieces", len(blocks))
	}
	for i := 1; i < len(blocks); i += 2 {
		language, block, _ := strings.Cut(blocks[i], "\n")
		if ok := known[language]; ok == nil || !ok(block+"\n") {
			t.Errorf("nothing tests the %q block\n%s", language, block)
		}
	}
}

// compiled returns a function that reports whether a block stands in an example,
// however far it is indented there.
func compiled(t *testing.T) func(block string) bool {
	t.Helper()
	var all strings.Builder
	_, sources := rootSources(t)
	for _, src := range sources {
		if src.isExample() {
			all.WriteString(flat(src.text))
		}
	}
	return func(block string) bool { return strings.Contains(all.String(), flat(block)) }
}

// flat is code without its indentation.
func flat(code string) string {
	lines := strings.Split(code, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimLeft(line, "\t")
	}
	return strings.Join(lines, "\n")
}
