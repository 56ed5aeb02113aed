// Package deploy_test checks the files that deploy examples/service, as far as that's
// possible without Docker, Kubernetes and a running systemd.
package deploy_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"example.com/go-webhookcfg/internal/integration/engine"
)

// files is the directory of these files. The image is built from repository.
const (
	files      = "../../../examples/service/deploy"
	repository = "../../.."
)

var postgres = engine.SharedPostgreSQL()

// built is the directory of the program.
var built string

func TestMain(m *testing.M) {
	var err error
	if built, err = os.MkdirTemp("", "deploy"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := postgres.Main(m)
	_ = os.RemoveAll(built)
	os.Exit(code)
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(files, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// build runs the Dockerfile's command that builds the program, and returns the program's
// path.
var build = sync.OnceValues(func() (string, error) {
	text, err := os.ReadFile(filepath.Join(files, "Dockerfile"))
	if err != nil {
		return "", err
	}
	command := regexp.MustCompile(`(?m)^RUN (.* -o )/service \.$`).FindStringSubmatch(string(text))
	directory := regexp.MustCompile(`(?m)^WORKDIR /src/(.*)$`).FindStringSubmatch(string(text))
	if command == nil || directory == nil {
		return "", errors.New("the Dockerfile builds no program")
	}
	path := filepath.Join(built, "service")
	cmd := exec.Command("sh", "-c", command[1]+path+" .")
	cmd.Dir = filepath.Join(repository, directory[1])
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
})

func program(t *testing.T) string {
	t.Helper()
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// checkArguments checks that the program knows its flags. It adds -h, and the program only
// gets that far if it knows the flags before that.
func checkArguments(t *testing.T, args ...string) {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), program(t), append(args, "-h")...).CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 2 || strings.Contains(string(output), "not defined") {
		t.Errorf("%q: %v: %s", args, err, output)
	}
}

func TestCheckArguments(t *testing.T) {
	checkArguments(t, "-listen", "127.0.0.1:0")
	output, err := exec.CommandContext(t.Context(), program(t), "-unknown", "-h").CombinedOutput()
	if err == nil || !strings.Contains(string(output), "not defined") {
		t.Errorf("an unknown flag: %v: %s", err, output)
	}
}

// TestProxies: each file demands a proxy for TLS and names it to the program, so that guesses
// behind it don't lock everybody out.
func TestProxies(t *testing.T) {
	for _, name := range []string{"compose.yaml", "kubernetes.yaml", "webhook-service.service"} {
		if text := read(t, name); !strings.Contains(text, "TLS") || !regexp.MustCompile(`-trusted-proxy[= ][0-9.]+/\d+`).MatchString(text) {
			t.Errorf("%s names no -trusted-proxy", name)
		}
	}
}
