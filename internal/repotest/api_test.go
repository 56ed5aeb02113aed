package repotest_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var accept = flag.Bool("accept", false, "accept the exported API as it is")

// TestAPI compares what the public modules export with the accepted API, so that no
// change of it goes unnoticed. Each line is a declaration, a field or a method.
func TestAPI(t *testing.T) {
	accepted := filepath.Join("internal", "repotest", "testdata", "api.txt")
	var lines []string
	for _, module := range publicModules(t) {
		lines = append(lines, exportedBy(t, module)...)
	}
	slices.Sort(lines)
	if *accept {
		if err := os.WriteFile(accepted, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	before := strings.Split(strings.TrimSpace(read(t, accepted)), "\n")
	for _, line := range before {
		if !slices.Contains(lines, line) {
			t.Errorf("gone: %s", line)
		}
	}
	for _, line := range lines {
		if !slices.Contains(before, line) {
			t.Errorf("new: %s", line)
		}
	}
	if t.Failed() {
		t.Errorf("If you want to change the API, run make accept-api and commit %s.", accepted)
	}
}

// listed is the part of `go list -json` that the test reads.
type listed struct {
	Dir, ImportPath, Name, Export string
	DepOnly                       bool
}

// compilerName matches a name that the compiler gave a result without one.
var compilerName = regexp.MustCompile(`#rv\d+ `)

// exportedBy returns what the packages of a module export that a host can import. The
// compiler's export data has the types and values that the source leaves out.
func exportedBy(t *testing.T, module string) (lines []string) {
	t.Helper()
	cmd := exec.Command("go", "list", "-export", "-deps", "-json=Dir,ImportPath,Name,Export,DepOnly", "./...")
	cmd.Dir, cmd.Stderr = module, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list in %s: %v", module, err)
	}
	export := make(map[string]string)
	imports := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(export[path])
	})
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; { // dependencies come first
		var pkg listed
		if err := decoder.Decode(&pkg); errors.Is(err, io.EOF) {
			return lines
		} else if err != nil {
			t.Fatal(err)
		}
		export[pkg.ImportPath] = pkg.Export
		if pkg.DepOnly || pkg.Name == "main" || strings.Contains(pkg.ImportPath, "/internal/") {
			continue
		}
		imported, err := imports.Import(pkg.ImportPath)
		if err != nil {
			t.Fatal(err)
		}
		dir, err := filepath.Rel(here, pkg.Dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range declarations(imported) {
			lines = append(lines, filepath.ToSlash(dir)+": "+compilerName.ReplaceAllString(line, ""))
		}
	}
}

// declarations returns the exported declarations of a package.
func declarations(pkg *types.Package) (lines []string) {
	names := func(other *types.Package) string {
		if other == pkg {
			return ""
		}
		return other.Name()
	}
	for _, name := range pkg.Scope().Names() {
		obj := pkg.Scope().Lookup(name)
		if !obj.Exported() {
			continue
		}
		switch obj := obj.(type) {
		case *types.Const:
			lines = append(lines, fmt.Sprintf("%s = %s", types.ObjectString(obj, names), obj.Val().ExactString()))
		case *types.TypeName:
			lines = append(lines, typeDeclaration(obj, names)...)
		default:
			lines = append(lines, types.ObjectString(obj, names))
		}
	}
	return lines
}

// typeDeclaration returns the declaration of a type, and the exported fields and methods
// of the type.
func typeDeclaration(obj *types.TypeName, names types.Qualifier) (lines []string) {
	if obj.IsAlias() {
		return []string{types.ObjectString(obj, names)}
	}
	header := "type " + obj.Name()
	switch typ := obj.Type().Underlying().(type) {
	case *types.Struct:
		lines = append(lines, header+" struct")
		for field := range typ.Fields() {
			if field.Exported() {
				lines = append(lines, header+" struct, "+types.ObjectString(field, names))
			}
		}
	case *types.Interface:
		lines = append(lines, header+" interface")
		for method := range typ.Methods() { // an unexported one keeps others from implementing it
			lines = append(lines, header+" interface, "+types.ObjectString(method, names))
		}
		return lines
	default:
		lines = append(lines, types.ObjectString(obj, names))
	}
	methods := types.NewMethodSet(types.NewPointer(obj.Type()))
	for selection := range methods.Methods() {
		if method := selection.Obj(); method.Exported() {
			lines = append(lines, types.ObjectString(method, names))
		}
	}
	return lines
}
