package contract_test

import (
	"path/filepath"
	"testing"
)

// TestLint: the linters of others find no fault with the document, and see one
// that is there.
func TestLint(t *testing.T) {
	dir := packages(t)
	write(t, filepath.Join(dir, "broken.yaml"), altered(t, "{message: successful}", "{message: 1}"))

	redocly := func(document string) []string { return []string{"lint", document, "--extends", "recommended-strict"} }
	run(t, tool(t, dir, "redocly", redocly("openapi.yaml")...))
	fail(t, tool(t, dir, "redocly", redocly("broken.yaml")...), "Example value must conform to the schema")

	spectral := func(document string) []string {
		return []string{"lint", document, "--ruleset", "spectral.yaml", "--fail-severity", "hint"}
	}
	run(t, tool(t, dir, "spectral", spectral("openapi.yaml")...))
	fail(t, tool(t, dir, "spectral", spectral("broken.yaml")...), "oas3-valid-media-example")
}
