package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"example.com/go-webhookcfg/examples/internal/backup"
	"example.com/go-webhookcfg/store"
)

const (
	path    = "/api/v1/configure/configure-webhook"
	variant = "/api/v1/configuration/configure-webhook"
)

// started is the program, running in this process.
type started struct {
	address string
	output  *bufio.Reader // after the address
	stop    func() error
}

// start runs the program on a free port and waits for its first line.
func start(t *testing.T, args ...string) started {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := run(ctx, append([]string{"-listen", "127.0.0.1:0"}, args...), writer, io.Discard)
		writer.CloseWithError(err)
		ended <- err
	}()
	output := bufio.NewReader(reader)
	line, err := output.ReadString('\n')
	if err != nil {
		t.Fatalf("no first line: %v", err)
	}
	stop := func() error { cancel(); return <-ended }
	t.Cleanup(cancel)
	return started{strings.TrimSpace(line), output, stop}
}

// call sends one request and returns "status body".
func (s started) call(t *testing.T, method, target, client, body string) string {
	t.Helper()
	r, err := http.NewRequest(method, "http://"+s.address+target, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	id, secret, _ := strings.Cut(client, ":")
	r.SetBasicAuth(id, secret)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(resp.StatusCode, " ", string(text))
}

// TestCommands checks the printed commands. It makes their requests, and some more, as the
// created client.
func TestCommands(t *testing.T) {
	s := start(t, "-dev")
	line, err := s.output.ReadString('\n')
	client, url, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "export CLIENT="), " HOOKS=")
	if err != nil || !ok || url != "http://"+s.address+path {
		t.Fatalf("got %q, %v", line, err)
	}
	for _, prefix := range []string{`curl -u "$CLIENT" "$HOOKS" `, "  -d ", `curl -u "$CLIENT" "$HOOKS" `, "  -d ", `curl -u "$CLIENT" "$HOOKS/e1"`, `curl -u "$CLIENT" -X DELETE "$HOOKS/e1"`} {
		if line, err := s.output.ReadString('\n'); err != nil || !strings.HasPrefix(line, prefix) {
			t.Errorf("got %q, %v, want %s…", line, err, prefix)
		}
	}
	const ok200 = `200 {"message":"successful"}`
	steps := []struct{ method, target, body, want string }{
		{"POST", path, `{"webhook_url":"https://example.com/all"}`, ok200},
		{"POST", path, `{"endpoint_id":"e1","webhook_url":"https://example.com/e1"}`, ok200},
		{"GET", path + "/e1", "", `"webhook_url":"https://example.com/e1","source":"override"`},
		{"DELETE", path + "/e1", "", ok200},
		{"GET", path + "/e1", "", `"webhook_url":null,"source":"off"`},
		{"GET", variant + "/e2", "", `"webhook_url":"https://example.com/all","source":"base"`},
		{"GET", path, "", `"overrides":[{"endpoint_id":"e1","webhook_url":null,`},
		{"POST", variant, `{"moc_id":"e1","webhook_url":"ftp://example.com/e1"}`, "400 "},
		{"DELETE", variant, "", ok200},
		{"GET", variant + "/e2", "", `"source":"none"`},
	}
	for _, step := range steps {
		if got := s.call(t, step.method, step.target, client, step.body); !strings.Contains(got, step.want) {
			t.Errorf("%s %s: got %s, want %s", step.method, step.target, got, step.want)
		}
	}
	if got := s.call(t, "DELETE", path, client+"x", ""); !strings.HasPrefix(got, "401 ") {
		t.Errorf("wrong secret: got %s", got)
	}
	if err := s.stop(); err != nil {
		t.Errorf("ended with %v", err)
	}
}

// TestPortal: the page for people signs in with the credentials of a client.
func TestPortal(t *testing.T) {
	s := start(t, "-credentials", writeCredentials(t))
	resp, err := http.PostForm("http://"+s.address+"/portal/?page=sign-in", url.Values{"username": {"acme"}, "password": {"s3cret"}, "then": {"overview"}})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	page, err := io.ReadAll(resp.Body)
	// The client sends no cookie.
	if err != nil || resp.Request.URL.RawQuery != "page=sign-in" || !strings.Contains(string(page), "keep the session") {
		t.Errorf("got %v, %s, %s", err, resp.Request.URL, page)
	}
}

// TestTestStops: as the README says, a client signs in, sets the URL that the program prints, sends
// a test, and reads that deliveries stopped, why, and what to do.
func TestTestStops(t *testing.T) {
	s := start(t, "-dev")
	var printed strings.Builder
	for !strings.Contains(printed.String(), gonePath+"\n") {
		line, err := s.output.ReadString('\n')
		if err != nil {
			t.Fatalf("no URL in %s: %v", &printed, err)
		}
		printed.WriteString(line)
	}
	_, rest, _ := strings.Cut(printed.String(), "CLIENT=")
	rest, _, _ = strings.Cut(rest, " ")
	id, secret, _ := strings.Cut(rest, ":")
	_, target, _ := strings.Cut(strings.TrimSpace(printed.String()), "see deliveries stop: ")

	cookies := make(map[string]*http.Cookie)
	do := func(method, page string, fields ...string) string {
		t.Helper()
		form := url.Values{}
		for pair := range slices.Chunk(fields, 2) {
			form.Set(pair[0], pair[1])
		}
		r, err := http.NewRequest(method, "http://"+s.address+portalPath+"?page="+page, strings.NewReader(form.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		for _, cookie := range cookies {
			r.AddCookie(cookie)
		}
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		for _, cookie := range resp.Cookies() {
			cookies[cookie.Name] = cookie
		}
		return html.UnescapeString(string(text))
	}
	do(http.MethodGet, "overview")
	do(http.MethodPost, "sign-in", "username", id, "password", secret, "then", "overview")
	do(http.MethodPost, "set", "client", id, "id", "e1", "url", target)
	if page := do(http.MethodGet, "entity&id=e1"); !strings.Contains(page, "No deliveries known") || !strings.Contains(page, "Send a test") {
		t.Errorf("before the test: %s", page)
	}
	do(http.MethodPost, "test", "client", id, "id", "e1")
	page := do(http.MethodGet, "entity&id=e1")
	for _, want := range []string{"Stopped", "Your server responded that the webhook is gone (410).", "Repair your server, then send a test."} {
		if !strings.Contains(page, want) {
			t.Errorf("after the test: no %s in %s", want, page)
		}
	}
	if page := do(http.MethodGet, "overview"); !strings.Contains(page, "Stopped") {
		t.Errorf("after the test, the list has no Stopped: %s", page)
	}
	if err := s.stop(); err != nil {
		t.Errorf("ended with %v", err)
	}
}

func TestFlags(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel() // so that the service doesn't start if a flag is accepted
	for _, args := range [][]string{
		{"-listen", ""},
		{"-listen", "127.0.0.1:"},
		{"-store", "cloud"},
		{"-credentials", filepath.Join(dir, "none")},
		{"-credentials", empty},
		{"-credentials", ""},
		{"-store", "file:"},
		{"-listen", "127.0.0.1:-1"},
		{"-unknown"},
		{"rest"},
	} {
		if err := run(ended, append([]string{"-listen", "127.0.0.1:0"}, args...), io.Discard, io.Discard); err == nil {
			t.Errorf("%q: no error", args)
		}
	}
}

// TestFileStore: acknowledged changes survive a restart, and a second process can't open the
// file. The program watches it and the credentials.
func TestFileStore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data") // private, whatever the umask
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	args := []string{"-dev", "-credentials", writeCredentials(t), "-store", "file:" + filepath.Join(dir, "webhooks.jsonl")}
	s := start(t, args...)
	if got, want := s.call(t, "GET", "/healthz", "", ""), "200 {\"credentials\":\"ok\",\"store\":\"ok\"}\n"; got != want {
		t.Errorf("health: got %q, want %q", got, want)
	}
	if got := s.call(t, "POST", path, "acme:s3cret", `{"webhook_url":"https://example.com/all"}`); !strings.HasPrefix(got, "200 ") {
		t.Errorf("set: got %s", got)
	}
	if err := run(t.Context(), append([]string{"-listen", "127.0.0.1:0"}, args...), io.Discard, io.Discard); !errors.Is(err, store.ErrLocked) {
		t.Errorf("a second process: %v", err)
	}
	if err := s.stop(); err != nil {
		t.Errorf("ended with %v", err)
	}
	s = start(t, args...)
	if got := s.call(t, "GET", path+"/e1", "acme:s3cret", ""); !strings.Contains(got, `"https://example.com/all","source":"base"`) {
		t.Errorf("after a restart: got %s", got)
	}
	if err := s.stop(); err != nil {
		t.Errorf("ended with %v", err)
	}
}

// TestGuessing: guesses are limited, but a client that has signed in isn't.
func TestGuessing(t *testing.T) {
	s := start(t, "-credentials", writeCredentials(t))
	signIn := func(client string) string { return s.call(t, "GET", path+"/e1", client, "")[:3] }
	if got := signIn("acme:s3cret"); got != "200" {
		t.Errorf("the client got %s", got)
	}
	guesses, status := 0, "401"
	for ; status == "401"; status = signIn("acme:guess") {
		if guesses++; guesses == 1000 {
			t.Fatal("a thousand guesses went through")
		}
	}
	if status != "429" {
		t.Errorf("guess %d got %s", guesses, status)
	}
	if got := signIn("acme:s3cret"); got != "200" {
		t.Errorf("after %d guesses the client got %s", guesses, got)
	}
}

// writeCredentials writes a credential file for acme with the secret "s3cret".
func writeCredentials(t *testing.T) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "credentials")
	const text = "begin\nacme:sha256:1ec1c26b50d5d3c58d9583181af8076655fe00756bf7285940ba3670f99fcba0\nend\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestPolicy: only -dev allows receivers on loopback, and ones that can't be reached.
func TestPolicy(t *testing.T) {
	const unreachable = "http://127.0.0.1:1"
	for want, args := range map[string][]string{"400 ": nil, "200 ": {"-dev"}} {
		s := start(t, append(args, "-credentials", writeCredentials(t))...)
		if got := s.call(t, "POST", path, "acme:s3cret", `{"webhook_url":"`+unreachable+`"}`); !strings.HasPrefix(got, want) {
			t.Errorf("%q: got %s, want %s", args, got, want)
		}
	}
}

// TestSIGTERM terminates the real program in a process of its own.
func TestSIGTERM(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no SIGTERM")
	}
	if os.Getenv("SERVER_TEST_CHILD") != "" {
		os.Args = []string{"server", "-listen", "127.0.0.1:0"}
		main()
		os.Exit(0)
	}
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSIGTERM$")
	child.Env = append(os.Environ(), "SERVER_TEST_CHILD=1")
	stdout, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	child.Stderr = &stderr
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	address, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	s := started{address: strings.TrimSpace(address)}
	if got := s.call(t, "DELETE", path, "unknown:nothing", ""); !strings.HasPrefix(got, "401 ") {
		t.Errorf("got %s", got)
	}
	if err := child.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := child.Wait(); err != nil {
		t.Errorf("ended with %v: %s", err, &stderr)
	}
}

// TestBackupOnRequest: the running program writes a backup, and ends without its socket.
func TestBackupOnRequest(t *testing.T) {
	dir, err := os.MkdirTemp("", "server") // short enough for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	file, target := filepath.Join(dir, "webhooks.jsonl"), filepath.Join(dir, "copy.jsonl")
	s := start(t, "-dev", "-credentials", writeCredentials(t), "-store", "file:"+file)
	if got := s.call(t, "POST", path, "acme:s3cret", `{"webhook_url":"https://example.com/all"}`); !strings.HasPrefix(got, "200") {
		t.Fatal(got)
	}
	if err := backup.Ask(t.Context(), file+backup.Suffix, target); err != nil {
		t.Error(err)
	}
	if err := s.stop(); err != nil {
		t.Error(err)
	}
	report, err := store.CheckFile(t.Context(), target, nil)
	if err != nil || report.Changes != 1 {
		t.Errorf("the copy has %d changes, %v", report.Changes, err)
	}
	if _, err := os.Lstat(path + backup.Suffix); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is left behind: %v", err)
	}
}
