package repotest_test

import (
	"go/ast"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// link matches a Markdown link, with its file and its anchor.
var link = regexp.MustCompile(`\]\(([^)#:\s]*)(?:#([^)\s]*))?\)`)

// TestLinks: every relative link of a page leads to a file, and every anchor to a heading.
func TestLinks(t *testing.T) {
	found := 0
	for _, name := range pages(t) {
		for _, match := range link.FindAllStringSubmatch(read(t, name), -1) {
			file, anchor := path.Join(path.Dir(name), match[1]), match[2]
			if match[1] == "" {
				file = name
			}
			found++
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s links to a file that isn't there: %v", name, err)
			} else if anchor != "" && !slices.Contains(anchors(read(t, file)), anchor) {
				t.Errorf("%s links to %s#%s, but no heading there has this anchor", name, file, anchor)
			}
		}
	}
	if found < 100 {
		t.Errorf("found only %d links", found)
	}
}

// pages returns the names of all Markdown pages, including those next to test data.
func pages(t *testing.T) (names []string) {
	t.Helper()
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "node_modules"):
			return fs.SkipDir
		case path.Ext(d.Name()) == ".md":
			names = append(names, filepath.ToSlash(p))
		}
		return nil
	})
	if err != nil || len(names) < 5 {
		t.Fatalf("found the pages %v: %v", names, err)
	}
	return names
}

var (
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	fenced  = regexp.MustCompile("(?ms)^```.*?^```$")
	dropped = regexp.MustCompile(`[^\pL\pN_ -]`)
)

// anchors returns the anchors that GitHub gives the headings of a page.
func anchors(page string) (all []string) {
	for _, match := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(page, ""), -1) {
		text := dropped.ReplaceAllString(strings.ToLower(match[1]), "")
		all = append(all, strings.ReplaceAll(text, " ", "-"))
	}
	return all
}

// TestDocComments: every exported name, also of fields and of interfaces'
// methods, is documented. A comment over a group of fields or constants counts
// for each of them.
func TestDocComments(t *testing.T) {
	fset, all := rootSources(t)
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
	covered, last := false, 0
	for _, field := range members(expr) {
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

// members returns the fields of a struct, or the methods of an interface.
func members(expr ast.Expr) []*ast.Field {
	switch typ := expr.(type) {
	case *ast.StructType:
		return typ.Fields.List
	case *ast.InterfaceType:
		return typ.Methods.List
	default:
		return nil
	}
}

// exportedReceiver reports whether a function is one that a reader of the
// documentation meets: no method of a type that is not exported.
func exportedReceiver(d *ast.FuncDecl) bool {
	return d.Recv == nil || token.IsExported(receiver(d))
}

// receiver returns the name of the type that a method belongs to.
func receiver(d *ast.FuncDecl) string {
	expr := d.Recv.List[0].Type
	if star, ok := expr.(*ast.StarExpr); ok {
		expr = star.X
	}
	switch generic := expr.(type) {
	case *ast.IndexExpr:
		expr = generic.X
	case *ast.IndexListExpr:
		expr = generic.X
	}
	name, ok := expr.(*ast.Ident)
	if !ok {
		return ""
	}
	return name.Name
}
