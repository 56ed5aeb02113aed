package repotest_test

import (
	"go/ast"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// allowedRequirements are the modules that a user of the core may inherit.
var allowedRequirements = []string{"github.com/google/go-cmp", "golang.org/x/sync"}

// publicModules are the modules whose imports the rule in doc.go names.
var publicModules = []string{".", "store/etcdstore"}

func TestRequirements(t *testing.T) {
	mod := readModFile(t)
	if mod.Go != "1.26.0" || mod.Toolchain != "" {
		t.Errorf("go %q, toolchain %q; a host on the oldest 1.26 must be able to build", mod.Go, mod.Toolchain)
	}
	for _, require := range mod.Require {
		if !slices.Contains(allowedRequirements, require.Path) {
			t.Errorf("go.mod requires %s", require.Path)
		}
	}
}

// TestImportRule compares the imports within the repository with the rule in doc.go,
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
	_, all := sources(t)
	for _, src := range all {
		if !slices.Contains(publicModules, src.module) {
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
				t.Errorf("%s imports %s: the import rule in doc.go does not allow it", src.path(), within)
			}
			if !src.isTest() {
				delete(unused, src.dir+" → "+within)
			}
		}
	}
	for _, line := range slices.Sorted(maps.Keys(unused)) {
		t.Errorf("the import rule in doc.go allows %s, which nothing needs", line)
	}
}

// readImportRule reads the lines with an arrow in doc.go.
func readImportRule(t *testing.T) map[string][]string {
	t.Helper()
	rule := make(map[string][]string)
	for line := range strings.Lines(read(t, "doc.go")) {
		dir, allowed, found := strings.Cut(strings.TrimPrefix(line, "//\t"), " → ")
		if found {
			rule[strings.TrimSpace(dir)] = strings.Split(strings.TrimSpace(allowed), ", ")
		}
	}
	if len(rule) < 5 {
		t.Fatalf("found only %d lines of the import rule in doc.go", len(rule))
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

// TestModules: these are the modules of the repository, and each is built from this
// checkout alone.
func TestModules(t *testing.T) {
	want := []string{".", "examples/mounts", "examples/service", "internal/integration", "internal/integration/caddy", "internal/integration/programs", "internal/tools", "store/etcdstore"}
	root := readModFile(t).Module.Path
	var got []string
	walk(t, func(name string) {
		switch path.Base(name) {
		case "go.mod":
			got = append(got, path.Dir(name))
			text := read(t, name)
			if name != "go.mod" && strings.Contains(text, root+" v") && !strings.Contains(text, root+" => ../") {
				t.Errorf("%s does not replace the root module", name)
			}
		case "go.work":
			t.Errorf("%s: modules are tested as a consumer gets them, without a workspace", name)
		}
	})
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("modules %v, want %v", got, want)
	}
}

// TestModulePathInNoString: the path will change when the module finds its home;
// nothing but imports may have to change with it.
func TestModulePathInNoString(t *testing.T) {
	module := readModFile(t).Module.Path
	fset, all := rootSources(t)
	for _, src := range all {
		imports := make(map[*ast.BasicLit]bool)
		for _, spec := range src.file.Imports {
			imports[spec.Path] = true
		}
		ast.Inspect(src.file, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if ok && !imports[lit] && strings.Contains(lit.Value, module) {
				t.Errorf("%s: a string holds the module path", fset.Position(lit.Pos()))
			}
			return true
		})
	}
}
