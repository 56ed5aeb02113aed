package repotest_test

import (
	"go/ast"
	"go/types"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const limitsPage = "internal/limits.md"

// limit is a section of the page: something that several parties share.
type limit struct {
	name   string
	fields map[string]string // such as "Bound"
}

// limitFields are what each section has, in this order. Only a section about things that
// nobody else can fill has no test.
var limitFields = []string{"In", "Grows with", "Bound", "At the bound", "Tests"}

// TestLimits compares the page about what parties share with the code: it names everything
// that can grow, and what it names exists.
func TestLimits(t *testing.T) {
	limits := readLimits(t)
	code := readCode(t)
	unlisted := maps.Clone(code.growing)
	for _, l := range limits {
		for _, name := range names(l.fields["In"]) {
			isNamed := func(other string) bool {
				prefix, isType := strings.CutSuffix(name, "*")
				return other == name || isType && strings.HasPrefix(other, prefix)
			}
			if !slices.ContainsFunc(slices.Collect(maps.Keys(code.known)), isNamed) {
				t.Errorf("%s: %q lists %s, which doesn't exist", limitsPage, l.name, name)
			}
			maps.DeleteFunc(unlisted, func(other string, _ bool) bool { return isNamed(other) })
		}
		for _, name := range names(l.fields["Tests"]) {
			if !code.tests[name] {
				t.Errorf("%s: %q lists the test %s, which doesn't exist", limitsPage, l.name, name)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(unlisted)) {
		t.Errorf("%s lists no %s: say who can make it grow, the bound, and what happens to others at the bound", limitsPage, name)
	}
}

var quoted = regexp.MustCompile("`([^`]+)`")

// names returns the texts in backquotes.
func names(text string) (all []string) {
	for _, match := range quoted.FindAllStringSubmatch(text, -1) {
		all = append(all, match[1])
	}
	return all
}

// readLimits reads the sections of the page.
func readLimits(t *testing.T) (limits []limit) {
	t.Helper()
	for _, section := range strings.Split(read(t, limitsPage), "\n### ")[1:] {
		name, text, _ := strings.Cut(section, "\n")
		text, _, _ = strings.Cut(text, "\n## ")
		l := limit{name, map[string]string{}}
		for item := range strings.SplitSeq("\n"+text, "\n- ") {
			if field, value, found := strings.Cut(item, ": "); found {
				l.fields[field] = strings.TrimSpace(value)
			}
		}
		for _, field := range limitFields {
			if l.fields[field] == "" {
				t.Errorf("%s: %q says nothing about %q", limitsPage, name, field)
			}
		}
		if len(names(l.fields["In"])) == 0 || len(names(l.fields["Tests"])) == 0 {
			t.Errorf("%s: %q names no code or no test", limitsPage, name)
		}
		limits = append(limits, l)
	}
	return limits
}

// code is what the page can name, such as "directory.Type.field", "directory.Type.method" and
// "directory.TestName".
type code struct {
	known   map[string]bool // fields, functions and tables of SQL
	growing map[string]bool // fields and tables that hold any number of things, and functions that start goroutines
	tests   map[string]bool
}

// readCode reads the packages that run in a host's process.
func readCode(t *testing.T) code {
	t.Helper()
	c := code{make(map[string]bool), make(map[string]bool), make(map[string]bool)}
	_, all := sources(t)
	queues := make(map[string]bool)
	for _, src := range all {
		if src.isTest() {
			for _, decl := range src.file.Decls {
				if f, ok := decl.(*ast.FuncDecl); ok {
					c.tests[src.dir+"."+f.Name.Name] = true
				}
			}
		} else if runsInHost(src) {
			readQueues(src, queues)
		}
	}
	for _, src := range all {
		if src.isTest() || !runsInHost(src) {
			continue
		}
		add := func(name string, grows bool) {
			c.known[src.dir+"."+name] = true
			if grows {
				c.growing[src.dir+"."+name] = true
			}
		}
		ast.Inspect(src.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				add(funcName(n), startsGoroutines(n))
			case *ast.TypeSpec:
				s, ok := n.Type.(*ast.StructType)
				if !ok {
					return true
				}
				isShared := slices.ContainsFunc(s.Fields.List, func(f *ast.Field) bool {
					return slices.Contains([]string{"sync.Mutex", "sync.RWMutex"}, types.ExprString(f.Type))
				})
				for _, field := range s.Fields.List {
					for _, name := range field.Names {
						add(n.Name.Name+"."+name.Name, canGrow(field.Type) || isShared && isList(field.Type) || queues[src.dir+"."+name.Name])
					}
				}
			}
			return true
		})
	}
	walk(t, func(name string) {
		dir, _, found := strings.Cut(name, "/schema/")
		if !found || path.Ext(name) != ".sql" {
			return
		}
		for _, match := range created.FindAllStringSubmatch(read(t, name), -1) {
			table := dir + "." + match[1]
			c.known[table] = true
			if !strings.HasSuffix(table, "_schema") { // has one row
				c.growing[table] = true
			}
		}
	})
	return c
}

var created = regexp.MustCompile(`CREATE TABLE IF NOT EXISTS (\w+)`)

// runsInHost reports whether a file runs in a host's process, and isn't one of the mechanisms
// whose uses count.
func runsInHost(src source) bool {
	others := []string{
		"mounttest", "delivertest", "storetest", "authtest", "hostile", "hooktest", "pathtest", "faultfs", "repotest", "interrupt",
		"lru", "ratelimit", "singleflight", "keylock", "healthcheck",
	}
	return (src.module == "." || src.module == "store/etcdstore") && !src.isExample() && !slices.Contains(others, path.Base(src.dir))
}

// canGrow reports whether a field has a table, locks by key, or calls by key.
func canGrow(expr ast.Expr) bool {
	switch e := expr.(type) {
	case *ast.MapType:
		return true
	case *ast.StarExpr:
		return canGrow(e.X)
	case *ast.IndexExpr, *ast.IndexListExpr, *ast.SelectorExpr:
		name := types.ExprString(expr)
		for _, kind := range []string{"lru.Map[", "ratelimit.", "singleflight.", "keylock.Locks", "healthcheck.", "sync.Map", "sync.Pool", "semaphore."} {
			if strings.HasPrefix(name, kind) {
				return true
			}
		}
	}
	return false
}

// isList reports whether a field has a list, which can grow if a lock guards it.
func isList(expr ast.Expr) bool {
	list, ok := expr.(*ast.ArrayType)
	return ok && list.Len == nil
}

// readQueues adds the fields that are set to a channel with room for several values, as
// "directory.field".
func readQueues(src source, queues map[string]bool) {
	ast.Inspect(src.file, func(n ast.Node) bool {
		var field, value ast.Expr
		switch n := n.(type) {
		case *ast.KeyValueExpr:
			field, value = n.Key, n.Value
		case *ast.AssignStmt:
			field, value = n.Lhs[0], n.Rhs[0]
			if selector, ok := field.(*ast.SelectorExpr); ok {
				field = selector.Sel
			}
		default:
			return true
		}
		name, isName := field.(*ast.Ident)
		call, isCall := value.(*ast.CallExpr)
		if isName && isCall && len(call.Args) == 2 && types.ExprString(call.Fun) == "make" {
			_, isChan := call.Args[0].(*ast.ChanType)
			if isChan && types.ExprString(call.Args[1]) != "1" {
				queues[src.dir+"."+name.Name] = true
			}
		}
		return true
	})
}

func startsGoroutines(f *ast.FuncDecl) (starts bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			starts = true
		case *ast.CallExpr:
			if s, ok := n.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "Go" {
				starts = true
			}
		}
		return !starts
	})
	return starts
}

// funcName returns the name of a function, with the type of its receiver in front.
func funcName(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	recv := f.Recv.List[0].Type
	if star, ok := recv.(*ast.StarExpr); ok {
		recv = star.X
	}
	name, _, _ := strings.Cut(types.ExprString(recv), "[")
	return name + "." + f.Name.Name
}
