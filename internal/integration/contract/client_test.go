package contract_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/oapi-codegen/runtime" // which generated clients import
)

// TestGenerated generates a client from the document and tests it. An overlay adds the file
// with the tests to this package for that run, since it doesn't compile without the client.
func TestGenerated(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	generated, overlay := filepath.Join(dir, "client.gen.go"), filepath.Join(dir, "overlay.json")
	run(t, goCommand(t, "tool", "oapi-codegen", "-config", "testdata/client/config.yaml", "-o", generated, "../../../webhookcfg/openapi.yaml"))
	files, err := json.Marshal(map[string]any{"Replace": map[string]string{
		filepath.Join(here, "testdata", "client", "client.gen.go"): generated,
		filepath.Join(here, "generated_test.go"):                   filepath.Join(here, "testdata", "generated_test.go"),
	}})
	if err != nil {
		t.Fatal(err)
	}
	write(t, overlay, files)
	tests := []string{"TestGeneratedClient", "TestGeneratedClientErrors", "TestGeneratedClientDelivery", "TestEmptyIdentifier"}
	output := run(t, goCommand(t, "test", "-count=1", "-v", "-overlay", overlay, "-run", "^("+strings.Join(tests, "|")+")$", "."))
	for _, name := range tests {
		if !strings.Contains(output, "--- PASS: "+name+" ") {
			t.Errorf("%s did not run:\n%s", name, output)
		}
	}
}
