package repotest_test

import (
	"go/ast"
	"go/token"
	"testing"
)

// TestNoSubtractionInComparisons: a function that compares for a sort or a search doesn't subtract.
// A difference can overflow, and one of 64 bits always can where an int has 32.
func TestNoSubtractionInComparisons(t *testing.T) {
	fset, all := sources(t)
	found := 0
	for _, src := range all {
		ast.Inspect(src.file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || !isOf(call.Fun, "slices") {
				return true
			}
			for _, arg := range call.Args {
				compare, ok := arg.(*ast.FuncLit)
				if !ok {
					continue
				}
				found++
				ast.Inspect(compare.Body, func(n ast.Node) bool {
					if r, ok := n.(*ast.ReturnStmt); ok && len(r.Results) == 1 && subtracts(r.Results[0]) {
						t.Errorf("%v: compare with cmp.Compare, since a difference can overflow", fset.Position(r.Pos()))
					}
					return true
				})
			}
			return true
		})
	}
	if found < 20 {
		t.Errorf("found only %d functions", found)
	}
}

// isOf reports whether a function is one of a package.
func isOf(fun ast.Expr, name string) bool {
	f, ok := fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	of, ok := f.X.(*ast.Ident)
	return ok && of.Name == name
}

// subtracts reports whether a result is a difference, or one that is converted to int.
func subtracts(result ast.Expr) bool {
	switch e := ast.Unparen(result).(type) {
	case *ast.BinaryExpr:
		return e.Op == token.SUB
	case *ast.CallExpr:
		of, ok := e.Fun.(*ast.Ident)
		return ok && of.Name == "int" && len(e.Args) == 1 && subtracts(e.Args[0])
	default:
		return false
	}
}
