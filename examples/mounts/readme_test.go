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

// TestReadme: each mount has its row, in order; its line is in the file that the row
// links, the version is the tested one, and the responses are those of the mount.
func TestReadme(t *testing.T) {
	rows := readmeRows(t)
	if len(rows) != len(mounts) {
		t.Fatalf("the README has %d rows for %d mounts", len(rows), len(mounts))
	}
	for i, r := range rows {
		m := mounts[i]
		if r.file != m.file {
			t.Errorf("row %d is of %s, want %s", i+1, r.file, m.file)
			continue
		}
		if !hasLine(read(t, r.file), r.snippet) {
			t.Errorf("%s does not have the line %s", r.file, r.snippet)
		}
		if want := version(t, read(t, r.file)); r.version != want {
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

// version returns the version in go.mod of the router that a source imports last.
func version(t *testing.T, source string) (v string) {
	t.Helper()
	for _, imported := range regexp.MustCompile(`"(github\.com/[^"]+)"`).FindAllStringSubmatch(source, -1) {
		for line := range strings.Lines(read(t, "go.mod")) {
			fields := strings.Fields(strings.TrimPrefix(line, "require "))
			if len(fields) >= 2 && strings.HasPrefix(imported[1]+"/", fields[0]+"/") {
				v = fields[1]
			}
		}
	}
	return v
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

// TestReadmeChecks: the check of a line can fail.
func TestReadmeChecks(t *testing.T) {
	source := read(t, "chi.go")
	for snippet, want := range map[string]bool{
		`r.Mount("/hooks", h)`:   true,
		`r.Mount("/hooks/", h)`:  false,
		`Mount("/hooks", h)`:     false,
		`h.Before(r)`:            false,
		`r.Mount("/hooks", h) x`: false,
	} {
		if hasLine(source, snippet) != want {
			t.Errorf("%s: want %t", snippet, want)
		}
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(text), "\r\n", "\n")
}
