package repotest_test

import (
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

var topLevel = []string{
	".ci", ".github", ".gitignore", "CHANGELOG.md", "LICENSE", "Makefile", "README.md", "auth",
	"doc.go", "examples", "go.mod", "go.sum", "internal", "store", "webhookcfg",
}

func TestTopLevel(t *testing.T) {
	out, err := exec.Command("git", "ls-files").Output()
	if err != nil {
		t.Skipf("git ls-files: %v", err)
	}
	names := make(map[string]bool)
	for name := range strings.Lines(string(out)) {
		first, _, _ := strings.Cut(strings.TrimSpace(name), "/")
		names[first] = true
	}
	if got := slices.Sorted(maps.Keys(names)); !slices.Equal(got, topLevel) {
		t.Errorf("the top level has %v, want %v", got, topLevel)
	}
}
