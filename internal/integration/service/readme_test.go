package service_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestReadme runs the README's three shells, on free ports.
func TestReadme(t *testing.T) {
	t.Parallel()
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../../../examples/service/README.md")
	if err != nil {
		t.Fatal(err)
	}
	readme := string(text)
	receiver, service, metrics := freePort(t), freePort(t), freePort(t)
	readme = strings.NewReplacer(
		"127.0.0.1:8080", service, "127.0.0.1:8081", metrics, "127.0.0.1:9000", receiver,
		"9000", receiver[strings.LastIndex(receiver, ":")+1:],
		"go run . -dev", path+" -listen "+service+" -dev", "go run .", path, "python3 -c", "exec python3 -c", "curl ", "curl -fsS ",
	).Replace(readme)
	blocks := regexp.MustCompile("(?ms)^```sh\n(.*?)^```$").FindAllStringSubmatch(readme, -1)
	if len(blocks) != 3 {
		t.Fatalf("the README has %d shells", len(blocks))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	dir := t.TempDir()
	shell := func(script string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, "bash", "-euc", script)
		cmd.Dir, cmd.Env, cmd.Stderr = dir, os.Environ(), t.Output()
		return cmd
	}
	call := func(script string) string {
		t.Helper()
		out, err := shell(script).Output()
		if err != nil {
			t.Fatalf("%s: %v", script, err)
		}
		return string(out)
	}

	received := serveBlock(t, shell(blocks[0][1]), receiver)
	printed := serveBlock(t, shell(blocks[1][1]), service)
	awaitReady(t, "http://"+service+"/readyz")
	// A person is slower than this test, so it waits where the README expects an effect.
	steps := regexp.MustCompile(`(?s)^(export CLIENT=acme:\S+ API=\S+\n)(.* -d on [^\n]*\n)(.*)sleep 1\n(.*)$`).FindStringSubmatch(strings.Replace(blocks[2][1], "acme:SECRET", <-printed, 1))
	if steps == nil {
		t.Fatal("the third shell has other steps")
	}
	api := steps[1]
	call(api + steps[2])
	(&program{t: t, metrics: "http://" + metrics + "/metrics"}).drain() // nothing is sent
	version := regexp.MustCompile(`\{"version":(\d+)\}`).FindStringSubmatch(call(api + steps[3]))
	select {
	case line := <-received:
		if version == nil || !strings.HasSuffix(line, fmt.Sprintf(` {"data":{"id":"e1","version":%s},"type":"module.updated"}`, version[1])) {
			t.Errorf("the receiver got %s", line)
		}
	case <-ctx.Done():
		t.Fatal("the receiver got nothing")
	}
	for !strings.Contains(call(api+steps[4]), `"delivery":{"state":"ok"`) {
		time.Sleep(20 * time.Millisecond) // the record follows the response
	}
	for _, span := range regexp.MustCompile("`(curl -fsS 127[^`]+)`").FindAllStringSubmatch(readme, -1) {
		if call(span[1]) == "" {
			t.Errorf("%s prints nothing", span[1])
		}
	}
}

// awaitReady waits until a path responds with 200.
func awaitReady(t *testing.T, target string) {
	t.Helper()
	for {
		resp, err := http.Get(target)
		if err == nil && resp.Body.Close() == nil && resp.StatusCode == http.StatusOK {
			return
		}
		select {
		case <-t.Context().Done():
			t.Fatal(err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// freePort returns an address on loopback that nothing listens on.
func freePort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// serveBlock starts a server, waits until it listens, and returns the lines that it prints. It
// is killed when the test ends.
func serveBlock(t *testing.T, cmd *exec.Cmd, address string) <-chan string {
	t.Helper()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines, ended := make(chan string, 100), make(chan error, 1)
	go func() {
		for scanner := bufio.NewScanner(stdout); scanner.Scan(); {
			lines <- scanner.Text()
		}
		ended <- cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		<-ended
	})
	for {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			_ = conn.Close()
			return lines
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatal(fmt.Errorf("the server ended: %v", err))
		case <-time.After(20 * time.Millisecond):
		}
	}
}
