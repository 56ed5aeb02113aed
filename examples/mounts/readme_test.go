package mounts

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// row is a line of the table in the README.
type row struct {
	router, version, file string
	snippet               string
	method, unclean       string // source of the response to an unknown method, and to "//hooks/…"
}

var rowPattern = regexp.MustCompile("^\\| \\[([^]]+?)(?: (v[0-9.]+))?\\]\\(([a-z0-9]+\\.go)\\) \\| `([^`]+)` \\| ([^|]+) \\| ([^|]+) \\| ([^|]+) \\|$")

// readmeRows reads the table between its markers.
func readmeRows(t *testing.T) []row {
	t.Helper()
	_, rest, opened := strings.Cut(read(t, "README.md"), "<!-- mounts -->\n")
	table, _, closed := strings.Cut(rest, "<!-- /mounts -->\n")
	lines := strings.Split(strings.TrimSuffix(table, "\n"), "\n")
	if !opened || !closed || len(lines) < 3 {
		t.Fatal("no table between <!-- mounts --> and <!-- /mounts --> in the README")
	}
	var rows []row
	for _, line := range lines[2:] {
		cells := rowPattern.FindStringSubmatch(line)
		if cells == nil {
			t.Fatalf("not a row: %s", line)
		}
		rows = append(rows, row{cells[1], cells[2], cells[3], cells[4], cells[5], cells[6]})
	}
	return rows
}

// TestReadme: each mount has its row, in order. The row's line is in its function, in the
// file that the row links, the version is the tested one, and the responses are the mount's.
func TestReadme(t *testing.T) {
	rows := readmeRows(t)
	if len(rows) != len(mounts) {
		t.Fatalf("the README has %d rows for %d mounts", len(rows), len(mounts))
	}
	for i, r := range rows {
		m := mounts[i]
		if !hasLine(body(t, r.file, m.function), r.snippet) {
			t.Errorf("%s in %s does not have the line %s", m.function, r.file, r.snippet)
		}
		if want := version(t, m.module); r.version != want {
			t.Errorf("%s: version %q, want %q", r.router, r.version, want)
		}
		st := newRecorder()
		for _, a := range drive(t, m.mount(t, newHandler(t, st, options())), st) {
			documented := map[string]string{"BREW " + configure: r.method, "DELETE /" + configure: r.unclean}[a.method+" "+a.target]
			if got := inWords(a); documented != "" && got != documented {
				t.Errorf("%s: %v: the README has %q, want %q", r.router, a, documented, got)
			}
		}
	}
}

// hasLine reports whether a line of the source is the snippet, or returns it.
func hasLine(source, snippet string) bool {
	for line := range strings.Lines(source) {
		line = strings.TrimPrefix(strings.TrimSpace(line), "return ")
		if strings.TrimSuffix(line, ", err") == snippet {
			return true
		}
	}
	return false
}

// body returns the text of a function. A reader imports one major version of a router, so
// the numbers that tell them apart here are dropped from the names of packages.
func body(t *testing.T, file, function string) string {
	t.Helper()
	_, rest, found := strings.Cut(read(t, file), "\nfunc "+function+"(")
	text, _, closed := strings.Cut(rest, "\n}\n")
	if !found || !closed {
		t.Fatalf("%s has no function %s", file, function)
	}
	return regexp.MustCompile(`\b(echo)[0-9]\.`).ReplaceAllString(text, "$1.")
}

// version returns the version of a module in go.mod.
func version(t *testing.T, module string) string {
	t.Helper()
	if module == "" {
		return ""
	}
	for line := range strings.Lines(read(t, "go.mod")) {
		fields := strings.Fields(strings.TrimPrefix(line, "require "))
		if len(fields) >= 2 && fields[0] == module {
			return fields[1]
		}
	}
	t.Fatalf("go.mod does not require %s", module)
	return ""
}

// inWords names the source of a response as the README does.
func inWords(a result) string {
	if a.outcome == a.want {
		return "handler"
	}
	status, kind, _ := strings.Cut(a.outcome, " ")
	if kind == "json" {
		kind = "JSON of the router"
	}
	return status + ", " + kind
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(text), "\r\n", "\n")
}
