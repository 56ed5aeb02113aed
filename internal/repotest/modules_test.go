package repotest_test

import (
	"go/ast"
	"path"
	"slices"
	"strings"
	"testing"
)

// allowedRequirements are the modules that a user of the core may inherit.
var allowedRequirements = []string{"github.com/google/go-cmp", "golang.org/x/sync"}

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

// makefileModules returns the directories of the modules in the lists of the Makefile.
func makefileModules(t *testing.T, lists ...string) (dirs []string) {
	t.Helper()
	found := make(map[string][]string)
	for line := range strings.Lines(read(t, "Makefile")) {
		if name, list, ok := strings.Cut(line, ":="); ok {
			found[strings.TrimSpace(name)] = strings.Fields(list)
		}
	}
	for _, name := range lists {
		if len(found[name]) == 0 {
			t.Fatalf("the Makefile has no list %s of modules", name)
		}
		dirs = append(dirs, found[name]...)
	}
	return dirs
}

// TestModules: the Makefile tests every module of the repository, and each is built from
// this checkout alone.
func TestModules(t *testing.T) {
	want := append(makefileModules(t, "PUBLIC", "EXAMPLES", "LAB"), "internal/tools")
	slices.Sort(want)
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
		t.Errorf("modules %v, the Makefile tests %v", got, want)
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
