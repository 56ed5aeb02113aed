package repotest_test

import (
	"go/ast"
	"go/token"
	"os"
	"path"
	"regexp"
	"testing"
)

// TestLinks: every relative link of a document leads to a file.
func TestLinks(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:]+)[^):]*\)`)
	walk(t, func(name string) {
		if path.Ext(name) != ".md" {
			return
		}
		for _, match := range link.FindAllStringSubmatch(read(t, name), -1) {
			if _, err := os.Stat(path.Join(path.Dir(name), match[1])); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
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
	switch generic := expr.(type) {
	case *ast.IndexExpr:
		expr = generic.X
	case *ast.IndexListExpr:
		expr = generic.X
	}
	name, ok := expr.(*ast.Ident)
	return !ok || name.IsExported()
}
