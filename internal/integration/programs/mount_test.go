// Package programs_test tests the handler inside programs that have their own server and
// router, with the lines in examples/mounts/README.md.
package programs_test

import (
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"example.com/go-webhookcfg/internal/pathtest"
	"example.com/go-webhookcfg/webhookcfg/mounttest"
)

// expectUnsafe expects a mount to fail for paths that a mux cleans.
func expectUnsafe(t testing.TB, s *pathtest.Service, url string) {
	t.Helper()
	isDots := func(f mounttest.Failure) bool { return f.Class == "dots" }
	if report := s.Check(t, url, nil); !slices.ContainsFunc(report.Failures, isDots) {
		t.Errorf("the mount passes: %v", report)
	}
}

// expectPage expects that the program's own page works next to the handler.
func expectPage(t testing.TB, url string) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("%s: %s", url, resp.Status)
	}
}

// section returns the text of a test between "// README" and "// end". It removes the
// indentation of the first line from every line.
func section(t testing.TB, name string) string {
	t.Helper()
	_, rest, opened := strings.Cut(readFile(t, name), "// README\n")
	text, _, closed := strings.Cut(rest, "// end\n")
	if !opened || !closed {
		t.Fatalf("%s: no section for the README", name)
	}
	indent := text[:len(text)-len(strings.TrimLeft(text, "\t"))]
	return strings.TrimRight(strings.ReplaceAll("\n"+text, "\n"+indent, "\n")[1:], "\t")
}

// TestReadme: the README shows the mounts that are tested here.
func TestReadme(t *testing.T) {
	readme := readFile(t, "../../../examples/mounts/README.md")
	if lines := section(t, "pocketbase_test.go"); !strings.Contains(readme, lines) {
		t.Errorf("the README does not show\n%s", lines)
	}
}

func readFile(t testing.TB, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(data), "\r\n", "\n")
}
