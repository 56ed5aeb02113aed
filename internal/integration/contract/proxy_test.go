package contract_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestProxy sends a collection of requests through a validating proxy to the
// example server: good ones, where the proxy turns any violation into an error,
// and others, where it only notes what it found.
func TestProxy(t *testing.T) {
	dir := packages(t)
	s := startService(t)
	strict := prism(t, dir, "--errors", "openapi.yaml", s.base)
	lenient := prism(t, dir, "openapi.yaml", s.base)

	run(t, newman(t, dir, s, strict, "good"))
	run(t, newman(t, dir, s, lenient, "malformed"))
	run(t, newman(t, dir, s, lenient, "beyond"))

	// The collection and the proxy notice what is wrong.
	fail(t, newman(t, dir, s, strict, "malformed"), "expected response to have status code 400 but got 422")
	fail(t, newman(t, dir, s, s.base, "malformed"), "violations")
	alterations := map[string][]string{
		"word":   {"enum: [successful]", "enum: [success]"},
		"status": {`"200":`, `"201":`},
		"field":  {"required: [message]", "required: [message, id]"},
		"header": {"enum: [no-store]", "enum: [no-cache]"},
		"method": {"    delete:\n", "    patch:\n"},
	}
	for name, alteration := range alterations {
		document := name + ".yaml"
		write(t, filepath.Join(dir, document), altered(t, alteration...))
		t.Run(name, func(t *testing.T) {
			fail(t, newman(t, dir, s, prism(t, dir, "--errors", document, s.base), "good"), "AssertionError")
		})
	}
}

// prism runs the proxy on a port of its own choice.
func prism(t *testing.T, dir string, args ...string) (base string) {
	t.Helper()
	args = append([]string{"proxy", "--host", "127.0.0.1", "--port", "0", "--multiprocess=false"}, args...)
	return start(t, tool(t, dir, "prism", args...), listening)
}

// newman is the collection's runner over one folder of it.
func newman(t *testing.T, dir string, s service, base, folder string) *exec.Cmd {
	t.Helper()
	id, secret, _ := strings.Cut(acme, ":")
	args := []string{"run", "collection.json", "--folder", folder, "--color", "off", "--timeout-request", "30000", "--ignore-redirects"}
	for name, value := range map[string]string{
		"base": base, "receiver": s.receiver, "nobody": s.nobody, "id": id, "secret": secret, "padding": strings.Repeat("x", 16<<10),
	} {
		args = append(args, "--env-var", name+"="+value)
	}
	return tool(t, dir, "newman", args...)
}
