package contract_test

import (
	"encoding/json"
	"os"
	"os/exec"
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

// transcript is the output that each third-party client must have. Each step has the status
// and the message, source or error code.
const transcript = `200 successful
200 override
200 successful
200 successful
200 successful
400 invalid_request
401 invalid_client
404 unknown_entity
`

// TestTypeScript generates types from the document, compiles a client in strict mode and runs
// it. With the types of another document, the client doesn't compile.
func TestTypeScript(t *testing.T) {
	dir := packages(t)
	s := startService(t)
	run(t, tool(t, dir, "openapi-typescript", "openapi.yaml", "--output", "schema.d.ts"))
	run(t, tool(t, dir, "tsc", "--project", "tsconfig.json"))
	runClient(t, s, command(t, dir, "node", "client.js"))

	write(t, filepath.Join(dir, "openapi.yaml"), altered(t, "        webhook_url:\n", "        url:\n", "[webhook_url", "[url"))
	run(t, tool(t, dir, "openapi-typescript", "openapi.yaml", "--output", "schema.d.ts"))
	expectFailure(t, tool(t, dir, "tsc", "--project", "tsconfig.json", "--noEmit"), "webhook_url")
}

// k6 is the package of k6, which Debian doesn't have. The go command builds it once.
const k6 = "go.k6.io/k6@v1.8.1"

// TestSmoke calls the interface with HTTP clients of other languages.
func TestSmoke(t *testing.T) {
	s := startService(t)
	tests := []struct {
		name string
		need []string // succeeds if the client is installed
		run  []string
	}{
		{"python3-requests", []string{"python3", "-c", "import requests"}, []string{"python3", "smoke.py"}},
		{"php-curl", []string{"php", "-r", "curl_init() or exit(1);"}, []string{"php", "smoke.php"}},
		{"Java HttpClient", []string{"javac", "--version"}, []string{"java", "Smoke.java"}},
		{"k6", []string{"go", "run", k6, "version"}, []string{"go", "run", k6, "run", "--quiet", "--no-usage-report", "--summary-mode=disabled", "--log-format", "raw", "--address", "", "smoke.js"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			requireTool(t, tt.need[0], tt.need[1:]...)
			runClient(t, s, command(t, "smoke", tt.run[0], tt.run[1:]...))
		})
	}
}

// runClient runs a client and compares its output with the transcript.
func runClient(t *testing.T, s service, client *exec.Cmd) {
	t.Helper()
	client.Env = append(client.Env, "BASE="+s.base, "RECEIVER="+s.receiver, "CLIENT="+acme)
	if got := run(t, client); got != transcript {
		t.Errorf("got\n%swant\n%s", got, transcript)
	}
}

// TestCurl calls the interface with curl.
func TestCurl(t *testing.T) {
	requireTool(t, "curl", "--version")
	s := startService(t)
	curl := func(client string, args ...string) string {
		always := []string{"--silent", "--show-error", "--noproxy", "*", "--max-time", "30", "--user", client, "--write-out", " %{http_code}"}
		return run(t, command(t, t.TempDir(), "curl", append(always, args...)...))
	}
	body := func(text string) []string { return []string{"--json", text, s.base + configure} }
	one := []string{s.base + configure + "/e1"}
	all := []string{"--request", "DELETE", s.base + configure}
	for _, step := range []struct {
		client string
		args   []string
		want   string
	}{
		{acme, body(`{"endpoint_id":"e1","webhook_url":"` + s.receiver + `"}`), `{"message":"successful"} 200`},
		{acme, one, `"source":"override"`},
		{acme, append([]string{"--request", "DELETE"}, one...), `{"message":"successful"} 200`},
		{acme, body(`{"webhook_url":"` + s.receiver + `"}`), `{"message":"successful"} 200`},
		{acme, all, `{"message":"successful"} 200`},
		{acme, body(`{"endpoint_id":null,"webhook_url":"` + s.receiver + `"}`), `"invalid_request"`},
		{acme + "x", all, `{"error":"invalid_client","error_description":"Invalid client credentials"} 401`},
		{acme, body(`{"endpoint_id":"e9","webhook_url":"` + s.receiver + `"}`), `"unknown_entity"`},
		{acme, []string{s.base + "/openapi.yaml"}, "openapi: 3.1.0"},
	} {
		if got := curl(step.client, step.args...); !strings.Contains(got, step.want) {
			t.Errorf("curl %q: got %s, want %s", step.args, got, step.want)
		}
	}
}
