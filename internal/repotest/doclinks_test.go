package repotest_test

import (
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// docLink matches a link of a doc comment to a name, with its package, or to a package.
var docLink = regexp.MustCompile(`(?:^|[\s("'])\[\*?(?:((?:[a-z][\w.-]*/)*[a-z]\w*)\.)?([A-Z]\w*(?:\.\w+)?)\]|\[((?:[\w.-]+/)+\w+)\]`)

// TestDocLinks: every link of a doc comment leads to an exported name or a package. Where go
// doc finds nothing, it prints the brackets.
func TestDocLinks(t *testing.T) {
	fset, all := sources(t)
	module, found := readModFile(t).Module.Path, 0
	files, imports := make(map[string][]*ast.File), make(map[string][]string) // of each package
	for _, src := range all {
		if src.isTest() {
			continue
		}
		pkg := path.Join(module, src.dir)
		files[pkg] = append(files[pkg], src.file)
		for _, spec := range src.file.Imports {
			imports[pkg] = append(imports[pkg], strings.Trim(spec.Path.Value, `"`))
		}
	}
	names := make(map[string]map[string]bool)
	leads := func(pkg, name string) bool {
		first, _, _ := strings.Cut(pkg, "/")
		if strings.Contains(first, ".") && !strings.HasPrefix(pkg, module) {
			return true // of another module, which isn't read
		}
		if names[pkg] == nil {
			found := files[pkg]
			if found == nil {
				found = standard(t, pkg)
			}
			names[pkg] = exportedNames(found)
		}
		return names[pkg][name]
	}
	for _, src := range all {
		if src.isTest() {
			continue
		}
		for _, group := range src.file.Comments {
			for _, match := range docLink.FindAllStringSubmatch(prose(group), -1) {
				pkg := path.Join(module, src.dir)
				switch {
				case match[3] != "":
					pkg = match[3]
				case match[1] != "":
					pkg = imported(match[1], imports[pkg])
				}
				found++
				if !leads(pkg, match[2]) {
					t.Errorf("%s: %s leads nowhere", fset.Position(group.Pos()), strings.TrimSpace(match[0]))
				}
			}
		}
	}
	if found < 200 {
		t.Errorf("found only %d links", found)
	}
}

// prose returns the text of a comment without its blocks of code.
func prose(group *ast.CommentGroup) string {
	var lines []string
	for line := range strings.Lines(group.Text()) {
		if !strings.HasPrefix(line, "\t") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return strings.Join(lines, "\n")
}

var majorVersion = regexp.MustCompile(`/v\d+$`)

// imported returns the path of a package that a comment calls by its name. Go doc knows the
// names of imports, and whole paths.
func imported(name string, imports []string) string {
	for _, imported := range imports {
		if path.Base(majorVersion.ReplaceAllString(imported, "")) == name {
			return imported
		}
	}
	return name
}

// standard parses a package of the standard library, with the files for all systems.
func standard(t *testing.T, pkg string) (files []*ast.File) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(build.Default.GOROOT, "src", pkg, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return files
}

// exportedNames returns the names that a link can lead to in a package. The empty name is
// the package's.
func exportedNames(files []*ast.File) map[string]bool {
	names := map[string]bool{"": len(files) > 0}
	for _, file := range files {
		for _, decl := range file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				name := d.Name.Name
				if d.Recv != nil {
					name = receiver(d) + "." + name
				}
				names[name] = true
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch s := spec.(type) {
					case *ast.TypeSpec:
						names[s.Name.Name] = true
						for _, field := range members(s.Type) {
							for _, name := range field.Names {
								names[s.Name.Name+"."+name.Name] = true
							}
						}
					case *ast.ValueSpec:
						for _, name := range s.Names {
							names[name.Name] = true
						}
					}
				}
			}
		}
	}
	return names
}
