package repotest_test

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// allowedRequirements are the modules that a user of the core may inherit.
var allowedRequirements = []string{"github.com/google/go-cmp", "golang.org/x/sync"}

// allowedImports is the import rule: which packages of the module a package may
// import outside its tests. A key that ends in a slash stands for all below it.
var allowedImports = map[string][]string{
	".":                      {},
	"webhookcfg":             {"webhookcfg/egress", "internal/redact", "internal/strictjson"},
	"webhookcfg/egress":      {"internal/ratelimit", "internal/singleflight"},
	"store":                  {"webhookcfg", "webhookcfg/egress", "store/cache", "internal/table", "internal/oplog"},
	"store/cache":            {"webhookcfg", "webhookcfg/egress", "internal/lru", "internal/singleflight"},
	"store/storetest":        {"webhookcfg", "webhookcfg/egress", "store/cache"},
	"store/sqlstore":         {"webhookcfg", "webhookcfg/egress", "store/cache", "internal/redact"},
	"auth":                   {"webhookcfg", "internal/lru", "internal/ratelimit", "internal/singleflight"},
	"auth/authtest":          {"webhookcfg"},
	"internal/redact":        {},
	"internal/strictjson":    {},
	"internal/table":         {"webhookcfg", "webhookcfg/egress"},
	"internal/oplog":         {"webhookcfg", "webhookcfg/egress"},
	"internal/singleflight":  {},
	"internal/oplog/faultfs": {"internal/oplog"},
	"examples/":              {"webhookcfg", "webhookcfg/egress", "store", "store/cache", "store/storetest", "auth"},

	"internal/ratelimit": {"internal/lru"},
}

// modFile is the part of `go mod edit -json` that the guards read.
type modFile struct {
	Module    struct{ Path string }
	Go        string
	Toolchain string
	Require   []struct{ Path string }
}

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

// source is one Go file of the root module.
type source struct {
	dir  string // slash-separated, "." for the root
	name string
	file *ast.File
}

func (s source) isTest() bool { return strings.HasSuffix(s.name, "_test.go") }

// sources parses every file of the root module: the folders with a go.mod of
// their own are other modules.
func sources(t *testing.T) (*token.FileSet, []source) {
	t.Helper()
	var all []source
	fset := token.NewFileSet()
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			nested, err := filepath.Glob(filepath.Join(p, "go.mod"))
			if p != "." && (err != nil || nested != nil || strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
				return fs.SkipDir
			}
			return err
		}
		if filepath.Ext(p) != ".go" {
			return nil
		}
		file, err := parser.ParseFile(fset, p, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		slashed := filepath.ToSlash(p)
		all = append(all, source{path.Dir(slashed), path.Base(slashed), file})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 20 {
		t.Fatalf("found only %d files", len(all))
	}
	return fset, all
}

func TestImportRule(t *testing.T) {
	module := readModFile(t).Module.Path
	_, all := sources(t)
	for _, src := range all {
		for _, spec := range src.file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if reason := forbidden(module, src, imported); reason != "" {
				t.Errorf("%s/%s imports %s: %s", src.dir, src.name, imported, reason)
			}
		}
	}
}

// forbidden says why a file must not import a package, "" if it may.
func forbidden(module string, src source, imported string) string {
	first, _, _ := strings.Cut(imported, "/")
	ours, isOurs := strings.CutPrefix(imported, module+"/")
	switch {
	case isOurs && !src.isTest() && !slices.Contains(importsOf(src.dir), ours):
		return "the import rule in doc.go does not name it"
	case isOurs || !strings.Contains(first, "."):
		return ""
	case src.isTest() && strings.HasPrefix(imported, "github.com/google/go-cmp/"):
		return ""
	case strings.HasPrefix(imported, "golang.org/x/sync/"):
		return ""
	}
	return "the root module has no such dependency"
}

func importsOf(dir string) []string {
	if allowed, ok := allowedImports[dir]; ok {
		return allowed
	}
	for prefix, allowed := range allowedImports {
		if strings.HasSuffix(prefix, "/") && strings.HasPrefix(dir, prefix) {
			return allowed
		}
	}
	return nil
}

// TestDocComments: every exported name, also of fields and of interfaces'
// methods, is documented. A comment over a group of fields or constants counts
// for each of them.
func TestDocComments(t *testing.T) {
	fset, all := sources(t)
	for _, src := range all {
		if src.isTest() {
			continue
		}
		for _, decl := range src.file.Decls {
			for _, name := range undocumented(fset, decl) {
				t.Errorf("%s: %s has no doc comment", fset.Position(name.Pos()), name.Name)
			}
		}
	}
}

func undocumented(fset *token.FileSet, decl ast.Decl) (names []*ast.Ident) {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && d.Doc == nil && exportedReceiver(d) {
			names = append(names, d.Name)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				if s.Name.IsExported() {
					if d.Doc == nil && s.Doc == nil {
						names = append(names, s.Name)
					}
					names = append(names, undocumentedMembers(fset, s.Type)...)
				}
			case *ast.ValueSpec:
				if d.Doc == nil && s.Doc == nil && s.Comment == nil {
					names = append(names, exported(s.Names)...)
				}
			}
		}
	}
	return names
}

// undocumentedMembers returns the members of a struct or an interface that
// neither have a comment nor stand on the line after one that has.
func undocumentedMembers(fset *token.FileSet, expr ast.Expr) (names []*ast.Ident) {
	var fields *ast.FieldList
	switch typ := expr.(type) {
	case *ast.StructType:
		fields = typ.Fields
	case *ast.InterfaceType:
		fields = typ.Methods
	default:
		return nil
	}
	covered, last := false, 0
	for _, field := range fields.List {
		follows := fset.Position(field.Pos()).Line == last+1
		covered = covered && follows || field.Doc != nil || field.Comment != nil
		last = fset.Position(field.End()).Line
		if !covered {
			names = append(names, exported(field.Names)...)
		}
	}
	return names
}

func exported(all []*ast.Ident) (names []*ast.Ident) {
	for _, name := range all {
		if name.IsExported() {
			names = append(names, name)
		}
	}
	return names
}

// exportedReceiver reports whether a function is one that a reader of the
// documentation meets: no method of a type that is not exported.
func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	expr := d.Recv.List[0].Type
	if star, ok := expr.(*ast.StarExpr); ok {
		expr = star.X
	}
	name, ok := expr.(*ast.Ident)
	return !ok || name.IsExported()
}

// TestModulePathInNoString: the path will change when the module finds its home;
// nothing but imports may have to change with it.
func TestModulePathInNoString(t *testing.T) {
	module := readModFile(t).Module.Path
	fset, all := sources(t)
	for _, src := range all {
		imports := make(map[*ast.BasicLit]bool)
		for _, spec := range src.file.Imports {
			imports[spec.Path] = true
		}
		ast.Inspect(src.file, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if ok && !imports[lit] && bytes.Contains([]byte(lit.Value), []byte(module)) {
				t.Errorf("%s: a string holds the module path", fset.Position(lit.Pos()))
			}
			return true
		})
	}
}
