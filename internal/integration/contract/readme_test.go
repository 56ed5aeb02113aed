package contract_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestReadme compares the versions in the README with those that run.
func TestReadme(t *testing.T) {
	modFile, pkg := readFile(t, "../go.mod"), struct{ DevDependencies map[string]string }{}
	if err := json.Unmarshal([]byte(readFile(t, "npm/package.json")), &pkg); err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(`(?m)^\| \[([^]]+)\]\([^)]+\) \| ([0-9.]+) \|`).FindAllStringSubmatch(readFile(t, "README.md"), -1)
	npm := 0
	for _, row := range rows {
		tool, version := row[1], row[2]
		if want := pkg.DevDependencies[tool]; want != "" {
			npm++
			if version != want {
				t.Errorf("%s: version %s, want %s", tool, version, want)
			}
			continue
		}
		if !regexp.MustCompile(`(?m)/` + tool + `(/v\d+)? v` + regexp.QuoteMeta(version) + `\b`).MatchString(modFile) {
			t.Errorf("%s: go.mod does not require version %s", tool, version)
		}
	}
	if npm != len(pkg.DevDependencies) || len(rows) < npm+3 {
		t.Errorf("%d rows, %d of them of npm", len(rows), npm)
	}
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(text), "\r\n", "\n")
}
