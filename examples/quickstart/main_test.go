package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/go-webhookcfg/store"
)

// TestMain runs the program itself if a test started this process to do so.
func TestMain(m *testing.M) {
	if os.Getenv("QUICKSTART") == "run" {
		main()
	}
	os.Exit(m.Run())
}

// TestListens: the program says where it listens.
func TestListens(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // ends a program that says nothing
	defer cancel()
	program := exec.CommandContext(ctx, os.Args[0])
	program.Env = append(os.Environ(), "QUICKSTART=run")
	output, err := program.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil || !strings.HasSuffix(line, " listening on http://127.0.0.1:8080\n") {
		t.Errorf("got %q, %v", line, err)
	}
	_ = program.Process.Kill()
	_ = program.Wait()
}

// TestReadme runs the README's commands. They must print what it shows.
func TestReadme(t *testing.T) {
	server := httptest.NewServer(newService(store.NewMemory()))
	defer server.Close()
	readme, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, session, _ := strings.Cut(strings.ReplaceAll(string(readme), "\r\n", "\n"), "```console\n$ ")
	session, _, _ = strings.Cut(session, "```")
	session = strings.ReplaceAll(session, "\\\n", "")
	variable, commands, _ := strings.Cut(session, "\n$ ")
	name, value, _ := strings.Cut(variable, "=")
	commands = strings.ReplaceAll(commands, "$"+name, value)
	commands = strings.ReplaceAll(commands, "http://127.0.0.1:8080", server.URL)
	steps := strings.Split(commands, "\n$ ")
	if len(steps) != 4 {
		t.Fatalf("the README has %d commands: %q", len(steps), steps)
	}
	for _, step := range steps {
		command, want, _ := strings.Cut(step, "\n")
		if got := do(t, curl(t, command)); strings.TrimSpace(got) != strings.TrimSpace(want) {
			t.Errorf("%s\ngot  %q\nwant %q", command, got, want)
		}
	}
}

// TestPathIsNotCleaned: mounted like this, the path of one entity never becomes the path for
// all of them.
func TestPathIsNotCleaned(t *testing.T) {
	server := httptest.NewServer(newService(store.NewMemory()))
	defer server.Close()
	const resource = "/api/v1/configure/configure-webhook"
	got := do(t, curl(t, "curl -u acme:a-long-random-secret -X DELETE "+server.URL+resource+"/e2/.."))
	if want := `{"error":"not_found","error_description":"There is nothing at this path"}`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// curl returns the request of a curl command.
func curl(t *testing.T, command string) *http.Request {
	t.Helper()
	words := strings.Fields(command)
	if words[0] != "curl" {
		t.Fatalf("not a curl command: %q", command)
	}
	method, user, body, target := http.MethodGet, "", "", ""
	header := http.Header{}
	for i := 1; i < len(words); i++ {
		word := words[i]
		argument := func() string {
			i++
			quoted := words[i]
			for strings.Count(quoted, "'") == 1 {
				i++
				quoted += " " + words[i]
			}
			return strings.Trim(quoted, "'")
		}
		switch word {
		case "-u":
			user = argument()
		case "-X":
			method = argument()
		case "-H":
			name, value, _ := strings.Cut(argument(), ": ")
			header.Set(name, value)
		case "-d":
			method, body = http.MethodPost, argument()
		default:
			target = word
		}
	}
	r, err := http.NewRequestWithContext(t.Context(), method, target, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = header
	if id, secret, ok := strings.Cut(user, ":"); ok {
		r.SetBasicAuth(id, secret)
	}
	return r
}

func do(t *testing.T, r *http.Request) string {
	t.Helper()
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
