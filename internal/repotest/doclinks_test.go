package repotest_test

import (
	"go/ast"
	"go/doc"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestDocLinks: a doc comment that names Type.Member or package.Name of the module links it at
// least once in the paragraph, so that a documentation site leads there.
func TestDocLinks(t *testing.T) {
	packages := publicPackages(t)
	known := make(map[string]bool)
	for _, pkg := range packages {
		for name := range docComments(pkg) {
			known[pkg.Name+"."+name] = true
			known[name] = strings.Contains(name, ".")
		}
	}
	if len(packages) < 15 || len(known) < 300 {
		t.Fatalf("found only %d names in %d packages", len(known), len(packages))
	}
	for _, pkg := range packages {
		for of, text := range docComments(pkg) {
			for _, name := range unlinked(pkg, text, known) {
				t.Errorf("%s: the comment of %s names %s without a link", pkg.ImportPath, of, name)
			}
		}
	}
}

// TestDocLinksPlanted: names are found in text and in lists, but not in code, and brackets
// that lead nowhere don't count.
func TestDocLinksPlanted(t *testing.T) {
	const text = `// Package p has T.M and other.X, and [T.N], which is T.N, and
// [example.com/else.Z], which is else.Z.
//
//   - T.F is in a list
//
// [other.Y] isn't imported, and p.None and T.None don't exist.
//
//	T.M()
package p

type T struct{ F int }

func (T) M() {}
func (T) N() {}
`
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "p.go", text, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	pkg, err := doc.NewFromFiles(fset, []*ast.File{file}, "example.com/p")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{"T.M": true, "T.N": true, "T.F": true, "other.X": true, "other.Y": true, "else.Z": true}
	got, want := unlinked(pkg, pkg.Doc, known), []string{"T.M", "other.X", "T.F", "other.Y"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// publicPackages returns the documentation of the packages that a host can import.
func publicPackages(t *testing.T) (packages []*doc.Package) {
	t.Helper()
	fset, all := sources(t)
	modules := publicModules(t)
	files := make(map[string][]*ast.File)
	for _, src := range all {
		isPublic := slices.Contains(modules, src.module) && !src.isExample() && !strings.Contains("/"+src.dir+"/", "/internal/")
		if isPublic && !src.isTest() && src.file.Name.Name != "main" {
			// Package doc changes what it gets.
			file, err := parser.ParseFile(fset, src.path(), src.text, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			files[src.dir] = append(files[src.dir], file)
		}
	}
	module := readModFile(t).Module.Path
	for dir, files := range files {
		pkg, err := doc.NewFromFiles(fset, files, path.Join(module, dir))
		if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, pkg)
	}
	return packages
}

// docComments returns the comments of a package, and of what it exports, by name. Fields and the
// methods of interfaces have the names Type.Field and Type.Method.
func docComments(pkg *doc.Package) map[string]string {
	comments := map[string]string{"the package": pkg.Doc}
	values := func(all []*doc.Value) {
		for _, value := range all {
			for _, name := range value.Names {
				comments[name] = value.Doc
			}
		}
	}
	funcs := func(all []*doc.Func, prefix string) {
		for _, f := range all {
			comments[prefix+f.Name] = f.Doc
		}
	}
	values(slices.Concat(pkg.Consts, pkg.Vars))
	funcs(pkg.Funcs, "")
	for _, typ := range pkg.Types {
		comments[typ.Name] = typ.Doc
		values(slices.Concat(typ.Consts, typ.Vars))
		funcs(typ.Funcs, "")
		funcs(typ.Methods, typ.Name+".")
		for _, spec := range typ.Decl.Specs {
			for _, member := range members(spec.(*ast.TypeSpec).Type) {
				for _, name := range member.Names {
					comments[typ.Name+"."+name.Name] = member.Doc.Text()
				}
			}
		}
	}
	return comments
}

// dotted matches Type.Member, package.Name and package.Type.Member.
var dotted = regexp.MustCompile(`\b[A-Za-z]\w*(\.[A-Z]\w*)+`)

// unlinked returns the known names in the text of a comment that are not linked in the same
// paragraph.
func unlinked(pkg *doc.Package, text string, known map[string]bool) (names []string) {
	paragraph := func(text []comment.Text) {
		var plain strings.Builder
		linked := make(map[string]bool)
		for _, part := range text {
			switch part := part.(type) {
			case comment.Plain:
				plain.WriteString(string(part))
			case *comment.DocLink:
				var link strings.Builder
				for _, text := range part.Text {
					if plain, ok := text.(comment.Plain); ok {
						link.WriteString(string(plain))
					}
				}
				linked[strings.TrimPrefix(path.Base(link.String()), "*")] = true
				plain.WriteString("[]")
			}
		}
		for _, name := range dotted.FindAllString(plain.String(), -1) {
			if known[name] && !linked[name] {
				names = append(names, name)
			}
		}
	}
	for _, block := range pkg.Parser().Parse(text).Content {
		switch block := block.(type) {
		case *comment.Paragraph:
			paragraph(block.Text)
		case *comment.List:
			for _, item := range block.Items {
				for _, block := range item.Content {
					paragraph(block.(*comment.Paragraph).Text)
				}
			}
		}
	}
	return names
}
