package repotest_test

import (
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestImportRule compares the imports within the repository with the rule in CONTRIBUTING.md,
// and the other imports of the root module with its requirements.
func TestImportRule(t *testing.T) {
	prefix := readModFile(t).Module.Path + "/"
	rule := readImportRule(t)
	unused := make(map[string]bool)
	for dir, allowed := range rule {
		for _, imported := range allowed {
			unused[dir+" → "+imported] = true
		}
	}
	public := publicModules(t)
	_, all := sources(t)
	for _, src := range all {
		if !slices.Contains(public, src.module) {
			continue
		}
		for _, spec := range src.file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			within, isWithin := strings.CutPrefix(imported, prefix)
			switch {
			case !isWithin && !mayRequire(src, imported):
				t.Errorf("%s imports %s: the root module has no such dependency", src.path(), imported)
			case isWithin && !src.isTest() && !mayImport(rule, src, within):
				t.Errorf("%s imports %s: the import rule in CONTRIBUTING.md does not allow it", src.path(), within)
			}
			if !src.isTest() {
				delete(unused, src.dir+" → "+within)
			}
		}
	}
	for _, line := range slices.Sorted(maps.Keys(unused)) {
		t.Errorf("the import rule in CONTRIBUTING.md allows %s, which nothing needs", line)
	}
}

// TestLineDecides: what decides about a client's notifications does nothing else.
func TestLineDecides(t *testing.T) {
	const dir = "webhookcfg/deliver/outbox/internal/line"
	_, all := sources(t)
	for _, src := range all {
		if src.dir != dir || src.isTest() {
			continue
		}
		for _, spec := range src.file.Imports {
			if imported, _ := strconv.Unquote(spec.Path.Value); slices.Contains([]string{"context", "database/sql", "net/http", "sync", "log/slog"}, imported) {
				t.Errorf("%s imports %s", src.path(), imported)
			}
		}
	}
}

// TestRequirements: a host gets nothing but x/sync with the core, and can be on the oldest
// release that is supported.
func TestRequirements(t *testing.T) {
	mod := readModFile(t)
	if mod.Go != "1.26.0" || mod.Toolchain != "" {
		t.Errorf("go %q, toolchain %q", mod.Go, mod.Toolchain)
	}
	for _, require := range mod.Require {
		if require.Path != "golang.org/x/sync" && require.Path != "github.com/google/go-cmp" {
			t.Errorf("go.mod requires %s", require.Path)
		}
	}
}

// publicModules returns the directories of the modules that a host can require.
func publicModules(t *testing.T) (dirs []string) {
	t.Helper()
	return makeList(t, "PUBLIC")
}

// makeList returns the elements of a list in the Makefile.
func makeList(t *testing.T, name string) (all []string) {
	t.Helper()
	for line := range strings.Lines(read(t, "Makefile")) {
		if left, list, ok := strings.Cut(line, ":="); ok && strings.TrimSpace(left) == name {
			all = strings.Fields(list)
		}
	}
	if len(all) == 0 {
		t.Fatalf("the Makefile has no list %s", name)
	}
	return all
}

// TestFullListsAll: make integration runs the tests of every package with the flag -full in full.
func TestFullListsAll(t *testing.T) {
	var want []string
	walk(t, func(name string) {
		if strings.HasSuffix(name, "_test.go") && strings.Contains(read(t, name), `flag.Bool("full", `+"false") {
			want = append(want, "./"+path.Dir(name))
		}
	})
	slices.Sort(want)
	if diff := cmp.Diff(want, makeList(t, "FULL")); diff != "" {
		t.Errorf("FULL in the Makefile (-want +got):\n%s", diff)
	}
}

// readImportRule reads the lines with an arrow in CONTRIBUTING.md.
func readImportRule(t *testing.T) map[string][]string {
	t.Helper()
	rule := make(map[string][]string)
	for line := range strings.Lines(read(t, ".github/CONTRIBUTING.md")) {
		dir, allowed, found := strings.Cut(line, " → ")
		if found {
			rule[strings.TrimSpace(dir)] = strings.Split(strings.TrimSpace(allowed), ", ")
		}
	}
	if len(rule) < 5 {
		t.Fatalf("found only %d lines of the import rule in CONTRIBUTING.md", len(rule))
	}
	return rule
}

// mayImport reports whether a file may import a package of the repository.
func mayImport(rule map[string][]string, src source, imported string) bool {
	if src.isExample() {
		return !strings.HasPrefix(imported, "internal/")
	}
	allowed := rule[src.dir]
	return slices.Contains(allowed, imported) ||
		imported == "webhookcfg/egress" && slices.Contains(allowed, "webhookcfg")
}

// mayRequire reports whether a file may import a package of another module.
func mayRequire(src source, imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return src.module != "." || !strings.Contains(first, ".") ||
		src.isTest() && strings.HasPrefix(imported, "github.com/google/go-cmp/") ||
		strings.HasPrefix(imported, "golang.org/x/sync/")
}
