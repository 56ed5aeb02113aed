package gowebhookcfg_test

import (
	"os"
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
	_, template, _ := strings.Cut(server, "export CLIENT=%[1]s:%[2]s\n")
	template, _, _ = strings.Cut(template, "`")
	printed := strings.NewReplacer("%[3]s", "127.0.0.1:8080", "%[4]s", "/api/v1/configure/configure-webhook").Replace(template)
	if strings.Count(printed, "curl ") != 4 || !strings.Contains(readme, "```sh\n"+printed+"```\n") {
		t.Errorf("the README does not have the lines that the example server prints:\n%s", printed)
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(text), "\r\n", "\n")
}
