package repotest_test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"log"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// TestMain runs the tests in the root of the repository. The go command doesn't know that, so it
// doesn't see which files they read: run them with -count=1.
func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil {
		log.Fatal(err)
	}
	os.Exit(m.Run())
}

// modFile is the part of `go mod edit -json` that the tests read.
type modFile struct {
	Module    struct{ Path string }
	Go        string
	Toolchain string
	Require   []struct{ Path string }
}

// readModFile reads the go.mod of the root module.
func readModFile(t *testing.T) modFile {
	t.Helper()
	out, err := exec.Command("go", "mod", "edit", "-json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var mod modFile
	if err := json.Unmarshal(out, &mod); err != nil {
		t.Fatal(err)
	}
	return mod
}

// source is one Go file of the repository.
type source struct {
	module string // the directory of its module, "." for the root
	dir    string // slash-separated, "." for the root
	name   string
	text   string
	file   *ast.File
}

func (s source) path() string { return path.Join(s.dir, s.name) }

func (s source) isTest() bool { return strings.HasSuffix(s.name, "_test.go") }

func (s source) isExample() bool { return strings.HasPrefix(s.dir, "examples/") }

// rootSources parses the Go files of the root module.
func rootSources(t *testing.T) (fset *token.FileSet, root []source) {
	t.Helper()
	fset, all := sources(t)
	for _, src := range all {
		if src.module == "." {
			root = append(root, src)
		}
	}
	if len(root) < 20 {
		t.Fatalf("found only %d files", len(root))
	}
	return fset, root
}

// parsed are the Go files of the repository, which take long to parse. No test changes them.
var parsed struct {
	once sync.Once
	fset *token.FileSet
	all  []source
}

// sources returns every Go file of the repository.
func sources(t *testing.T) (fset *token.FileSet, all []source) {
	t.Helper()
	parsed.once.Do(func() { parsed.fset, parsed.all = parseSources(t) })
	if parsed.all == nil {
		t.Fatal("the Go files can't be parsed, as an earlier test says")
	}
	return parsed.fset, slices.Clone(parsed.all)
}

func parseSources(t *testing.T) (fset *token.FileSet, all []source) {
	t.Helper()
	fset = token.NewFileSet()
	modules := make(map[string]string) // the module of each directory
	walk(t, func(name string) {
		dir := path.Dir(name)
		if modules[dir] == "" {
			modules[dir] = moduleOf(dir)
		}
		if path.Ext(name) != ".go" {
			return
		}
		text := read(t, name)
		file, err := parser.ParseFile(fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, source{modules[dir], dir, path.Base(name), text, file})
	})
	return fset, all
}

// moduleOf returns the directory of the module that a directory belongs to.
func moduleOf(dir string) string {
	for ; dir != "."; dir = path.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
	}
	return dir
}

// walk calls fn with the slash-separated name of every file of the repository, except
// test data and installed packages.
func walk(t *testing.T, fn func(name string)) {
	t.Helper()
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case !d.IsDir():
			fn(filepath.ToSlash(p))
		case d.Name() == ".git" || d.Name() == "testdata" || d.Name() == "node_modules":
			return fs.SkipDir
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// read returns the text of a file, with the line ends of Unix.
func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(text), "\r\n", "\n")
}
