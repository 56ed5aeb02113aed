package contract_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// transcript is what every client of others prints: for each step of one walk
// the status and the word that matters.
const transcript = `200 successful
200 override
200 successful
200 successful
200 successful
400 invalid_request
401 invalid_client
404 unknown_entity
`

// TestTypeScript makes types of the document, compiles a client strictly and runs
// it. Types of another document do not fit the client.
func TestTypeScript(t *testing.T) {
	dir := packages(t)
	s := startService(t)
	run(t, tool(t, dir, "openapi-typescript", "openapi.yaml", "--output", "schema.d.ts"))
	run(t, tool(t, dir, "tsc", "--project", "tsconfig.json"))
	walk(t, s, command(t, dir, "node", "client.js"))

	write(t, filepath.Join(dir, "openapi.yaml"), altered(t, "        webhook_url:\n", "        url:\n", "[webhook_url", "[url"))
	run(t, tool(t, dir, "openapi-typescript", "openapi.yaml", "--output", "schema.d.ts"))
	fail(t, tool(t, dir, "tsc", "--project", "tsconfig.json", "--noEmit"), "webhook_url")
}

// TestSmoke walks through the interface with the HTTP clients of other languages,
// those that are installed.
func TestSmoke(t *testing.T) {
	outside(t)
	s := startService(t)
	tests := []struct {
		name string
		need []string // succeeds where the client is installed
		run  []string
	}{
		{"python3-requests", []string{"python3", "-c", "import requests"}, []string{"python3", "smoke.py"}},
		{"php-curl", []string{"php", "-r", "curl_init() or exit(1);"}, []string{"php", "smoke.php"}},
		{"Java HttpClient", []string{"javac", "--version"}, []string{"java", "Smoke.java"}},
		{"k6", []string{"k6", "version"}, []string{"k6", "run", "--quiet", "--no-usage-report", "--summary-mode=disabled", "--log-format", "raw", "--address", "", "smoke.js"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if err := exec.CommandContext(t.Context(), tt.need[0], tt.need[1:]...).Run(); err != nil {
				t.Skipf("%s is not installed: %v", tt.name, err)
			}
			walk(t, s, command(t, "smoke", tt.run[0], tt.run[1:]...))
		})
	}
}

// walk runs a client and wants the transcript of it.
func walk(t *testing.T, s service, client *exec.Cmd) {
	t.Helper()
	client.Env = append(client.Env, "BASE="+s.base, "RECEIVER="+s.receiver, "CLIENT="+acme)
	if got := run(t, client); got != transcript {
		t.Errorf("got\n%swant\n%s", got, transcript)
	}
}

// TestCurl runs the command line of the README's user.
func TestCurl(t *testing.T) {
	outside(t)
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skipf("curl is not installed: %v", err)
	}
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
