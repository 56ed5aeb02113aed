package repotest_test

import (
	"go/ast"
	"path"
	"regexp"
	"strings"
	"testing"
)

// testName matches a test in the table: the directory of its package, and the function.
var testName = regexp.MustCompile("`([a-z/]+)\\.(Test[A-Za-z0-9]+)`")

// TestSpecificationTable: the tests that the table of the Standard Webhooks specification names
// are there, and each point names one, or says that it's left to others.
func TestSpecificationTable(t *testing.T) {
	_, all := sources(t)
	tests := make(map[string]bool)
	for _, src := range all {
		for _, decl := range src.file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasSuffix(src.name, "_test.go") {
				tests[path.Base(src.dir)+"."+f.Name.Name] = true
			}
		}
	}
	_, table, _ := strings.Cut(read(t, "webhookcfg/deliver/standard-webhooks.md"), "| Standard Webhooks 1.0.0 |")
	table, _, _ = strings.Cut(table, "\n\n")
	rows := strings.Split(strings.TrimSpace(table), "\n")[2:]
	if len(rows) < 20 {
		t.Fatalf("found only %d points", len(rows))
	}
	for _, row := range rows {
		named := testName.FindAllStringSubmatch(row, -1)
		if len(named) == 0 && !strings.HasSuffix(row, "| – |") {
			t.Errorf("no test: %s", row)
		}
		for _, name := range named {
			if !tests[name[1]+"."+name[2]] {
				t.Errorf("there is no %s: %s", name[0], row)
			}
		}
	}
}
