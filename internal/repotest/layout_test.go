package repotest_test

import (
	"bytes"
	"go/ast"
	"go/token"
	"maps"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The repository stays small enough to be read. A change with a good reason may raise
// a limit, and its commit message states the reason.
const (
	maxFiles      = 20     // non-test files of a package
	maxLines      = 400    // of a file
	smallFile     = 40     // lines
	maxSmallFiles = 2      // of a package
	maxCoreNames  = 77     // exported by package webhookcfg
	maxCoreCode   = 1_786  // lines of package webhookcfg
	maxCode       = 17_100 // lines of the root module without tests
)

var topLevel = []string{
	".ci", ".github", ".gitignore", "CHANGELOG.md", "LICENSE", "Makefile", "README.md", "auth",
	"doc.go", "examples", "go.mod", "go.sum", "internal", "store", "webhookcfg",
}

// exemptFile matches the files that may have any length: package documentation and code
// for one platform.
var exemptFile = regexp.MustCompile(`^doc\.go$|_(linux|unix|windows|other)\.go$`)

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

// TestFiles: a package has few files, and a file is neither long nor trivial.
func TestFiles(t *testing.T) {
	files, small := make(map[string]int), make(map[string][]string)
	_, all := librarySources(t)
	for _, src := range all {
		if src.isExample() {
			continue
		}
		files[src.dir]++
		lines := strings.Count(src.text, "\n")
		if lines > maxLines {
			t.Errorf("%s has %d lines, at most %d are allowed", src.path(), lines, maxLines)
		}
		if lines < smallFile && !exemptFile.MatchString(src.name) {
			small[src.dir] = append(small[src.dir], src.name)
		}
	}
	for dir, n := range files {
		if n > maxFiles {
			t.Errorf("%s has %d files, at most %d are allowed", dir, n, maxFiles)
		}
	}
	for dir, names := range small {
		if len(names) > maxSmallFiles {
			t.Errorf("%s has %d files of less than %d lines: %v", dir, len(names), smallFile, names)
		}
	}
}

// TestSize counts the lines of code, and the names that a reader of the core has to learn.
func TestSize(t *testing.T) {
	fset, all := librarySources(t)
	code, coreCode, coreNames := 0, 0, 0
	for _, src := range all {
		lines := codeLines(fset, src)
		code += lines
		if src.dir == "webhookcfg" {
			coreCode += lines
			coreNames += len(exportedNames(src.file))
		}
	}
	for _, count := range []struct {
		noun     string
		got, max int
	}{
		{"lines of code in the root module", code, maxCode},
		{"lines of code in webhookcfg", coreCode, maxCoreCode},
		{"names exported by webhookcfg", coreNames, maxCoreNames},
	} {
		t.Logf("%d %s", count.got, count.noun)
		if count.got > count.max {
			t.Errorf("%d %s, at most %d are allowed", count.got, count.noun, count.max)
		}
	}
}

// TestTypeNames: a name stands for one type of the module.
func TestTypeNames(t *testing.T) {
	packages := make(map[string][]string)
	_, all := librarySources(t)
	for _, src := range all {
		for _, decl := range src.file.Decls {
			d, ok := decl.(*ast.GenDecl)
			if !ok || d.Tok != token.TYPE {
				continue
			}
			for _, spec := range d.Specs {
				if name := spec.(*ast.TypeSpec).Name; !name.IsExported() {
					packages[name.Name] = append(packages[name.Name], src.dir)
				}
			}
		}
	}
	for name, dirs := range packages {
		slices.Sort(dirs)
		if dirs = slices.Compact(dirs); len(dirs) > 1 {
			t.Errorf("%v each have a type %s", dirs, name)
		}
	}
}

// librarySources returns the files of the root module that are no tests.
func librarySources(t *testing.T) (*token.FileSet, []source) {
	t.Helper()
	fset, all := rootSources(t)
	return fset, slices.DeleteFunc(all, source.isTest)
}

// codeLines counts the lines that hold more than comments.
func codeLines(fset *token.FileSet, src source) (n int) {
	text := []byte(src.text)
	for _, group := range src.file.Comments {
		for i := fset.Position(group.Pos()).Offset; i < fset.Position(group.End()).Offset; i++ {
			if text[i] != '\n' {
				text[i] = ' '
			}
		}
	}
	for line := range bytes.Lines(text) {
		if len(bytes.TrimSpace(line)) > 0 {
			n++
		}
	}
	return n
}

// exportedNames returns the names that a file exports: types, functions, constants,
// variables, and methods of exported types.
func exportedNames(file *ast.File) (names []*ast.Ident) {
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if exportedReceiver(d) {
				names = append(names, exported([]*ast.Ident{d.Name})...)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					names = append(names, exported([]*ast.Ident{s.Name})...)
				case *ast.ValueSpec:
					names = append(names, exported(s.Names)...)
				}
			}
		}
	}
	return names
}
