// Package service_test runs examples/service as an operator would. It kills the service, and
// checks that it delivers everything that it has acknowledged.
package service_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"example.com/go-webhookcfg/internal/integration/engine"
	"github.com/jackc/pgx/v5"
)

const (
	client = "acme"
	master = "a-master-of-at-least-thirty-two-bytes"
)

var postgres = engine.SharedPostgreSQL()

// binaries is the directory of the built programs.
var binaries string

func TestMain(m *testing.M) {
	var err error
	if binaries, err = os.MkdirTemp("", "service"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := postgres.Main(m)
	_ = os.RemoveAll(binaries)
	os.Exit(code)
}

// build returns the path of the program.
var build = sync.OnceValues(func() (path string, err error) {
	path = filepath.Join(binaries, "service")
	cmd := exec.Command("go", "build", "-o", path, ".")
	cmd.Dir = "../../../examples/service"
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
})

// onEachEngine runs a test on each database, concurrently with the other tests.
func onEachEngine(t *testing.T, test func(t *testing.T, store string)) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, "sqlite:"+filepath.Join(t.TempDir(), "service.db"))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(t, newDatabase(t))
	})
}

// newDatabase returns the data source name of a PostgreSQL database for this test only.
func newDatabase(t *testing.T) string {
	t.Helper()
	dsn, err := url.Parse(postgres.Get(t).DSN())
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("service_%d_%d", os.Getpid(), time.Now().UnixNano())
	administer := func(statement string) {
		ctx := context.WithoutCancel(t.Context())
		conn, err := pgx.Connect(ctx, dsn.String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(ctx)
		if _, err := conn.Exec(ctx, statement); err != nil {
			t.Fatal(err)
		}
	}
	administer("CREATE DATABASE " + name)
	t.Cleanup(func() { administer("DROP DATABASE " + name + " WITH (FORCE)") })
	own := *dsn
	own.Path = "/" + name
	return own.String()
}

// program is a running process of the service.
type program struct {
	t       testing.TB
	secret  string // of the client
	cmd     *exec.Cmd
	stderr  *output
	url     string
	metrics string
	exited  chan error
}

// output is what the program has printed so far.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements [io.Writer].
func (o *output) Write(text []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(text)
}

// String implements [fmt.Stringer].
func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// start starts the program, and returns once it's listening. The program is killed when the
// test ends.
func start(t testing.TB, path, store string, flags ...string) *program {
	t.Helper()
	args := []string{
		"-listen", "127.0.0.1:0", "-metrics", "127.0.0.1:0", "-dev", "-migrate",
		"-store", store,
		"-timeout", "2s", "-max-pause", "100ms", "-schedule", "50ms" + strings.Repeat(",50ms", 200),
	}
	p := &program{t: t, secret: secretOf(t, path, store), stderr: new(output), cmd: exec.Command(path, append(args, flags...)...), exited: make(chan error, 1)}
	p.cmd.Env = append(os.Environ(), "MASTER="+master)
	p.cmd.Stderr = p.stderr
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	var addresses []string
	for len(addresses) < 2 && lines.Scan() {
		addresses = append(addresses, lines.Text())
	}
	go func() {
		_, _ = io.Copy(io.Discard, stdout)
		p.exited <- p.cmd.Wait()
	}()
	t.Cleanup(p.kill)
	if len(addresses) < 2 {
		p.kill()
		t.Fatalf("the program ended:\n%s", p.stderr)
	}
	p.url, p.metrics = "http://"+addresses[0], "http://"+addresses[1]+"/metrics"
	return p
}

// added has the client's secret in each store.
var added sync.Map

// secretOf adds the client to a store, unless it has it, and returns its secret.
func secretOf(t testing.TB, path, store string) string {
	t.Helper()
	if known, ok := added.Load(store); ok {
		return known.(string)
	}
	output, err := exec.CommandContext(t.Context(), path, "-migrate", "-store", store, "add", client).Output()
	if err != nil {
		t.Fatalf("add: %v", err)
	}
	_, secret, _ := strings.Cut(strings.TrimSpace(string(output)), ":")
	added.Store(store, secret)
	return secret
}

// kill kills the program as a crash would, if it's running, and waits until it has ended.
func (p *program) kill() {
	_ = p.cmd.Process.Kill()
	err := <-p.exited
	p.exited <- err
}

// stop asks the program to stop.
func (p *program) stop() {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatal(err)
	}
}

// wait waits until the program ends by itself.
func (p *program) wait() {
	p.t.Helper()
	err := <-p.exited
	p.exited <- err
	if err != nil {
		p.t.Errorf("the program ended with %v:\n%s", err, p.stderr)
	}
}

// call sends one request of the client, and decodes the response into it.
func (p *program) call(method, path, body string, response any) error {
	r, err := http.NewRequestWithContext(p.t.Context(), method, p.url+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	r.SetBasicAuth(client, p.secret)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: %s", method, path, resp.Status)
	}
	return json.NewDecoder(resp.Body).Decode(response)
}

// set sets the webhook of a module. If the module is "", it sets the webhook of all.
func (p *program) set(module, target string) {
	p.t.Helper()
	body := map[string]string{"webhook_url": target}
	if module != "" {
		body["endpoint_id"] = module
	}
	text, err := json.Marshal(body)
	if err != nil {
		p.t.Fatal(err)
	}
	if err := p.call(http.MethodPost, "/api/v1/configure/configure-webhook", string(text), new(any)); err != nil {
		p.t.Fatal(err)
	}
}

// change changes a module, and returns its version once the program has acknowledged it.
func (p *program) change(module string) (version int64, err error) {
	var response struct{ Version int64 }
	err = p.call(http.MethodPut, "/api/v1/modules/"+module, "any state", &response)
	return response.Version, err
}

// mustChange is like change, but must succeed.
func (p *program) mustChange(l *ledger, module string) {
	p.t.Helper()
	version, err := p.change(module)
	if err != nil {
		p.t.Fatal(err)
	}
	l.acknowledge(module, version)
}

// mustChangeEach makes one change to each of n modules, whose notifications don't wait for each
// other.
func (p *program) mustChangeEach(l *ledger, n int) {
	p.t.Helper()
	for i := range n {
		p.mustChange(l, moduleName(i))
	}
}

// signingKey returns the client's key.
func (p *program) signingKey() string {
	p.t.Helper()
	var response struct{ Key string }
	if err := p.call(http.MethodGet, "/api/v1/signing-key", "", &response); err != nil {
		p.t.Fatal(err)
	}
	return response.Key
}

// figures are the program's metrics.
type figures struct {
	Results map[string]int64
	Queue   struct {
		Waiting, GivenUp int64
	}
}

func (p *program) figures() (f figures) {
	p.t.Helper()
	resp, err := http.Get(p.metrics)
	if err != nil {
		p.kill() // so that we can read its output
		p.t.Fatalf("%v; the program printed\n%s", err, p.stderr)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	f.Results = map[string]int64{}
	for _, result := range resultLine.FindAllStringSubmatch(string(text), -1) {
		f.Results[strings.TrimSuffix(result[1]+"/"+result[2], "/")], _ = strconv.ParseInt(result[3], 10, 64)
	}
	for state, n := range map[string]*int64{"waiting": &f.Queue.Waiting, "given_up": &f.Queue.GivenUp} {
		_, value, found := strings.Cut(string(text), "webhook_queue_notifications{part=\"queue\",state=\""+state+"\"} ")
		value, _, _ = strings.Cut(value, "\n")
		if *n, err = strconv.ParseInt(value, 10, 64); err != nil || !found {
			p.t.Fatalf("no number of notifications %s: %v in\n%s", state, err, text)
		}
	}
	return f
}

var resultLine = regexp.MustCompile(`(?m)^webhook_delivery_results_total\{outcome="(.*)",reason="(.*)"\} (\d+)$`)

// drain waits until the queue is empty.
func (p *program) drain() figures {
	p.t.Helper()
	return p.await(func(f figures) bool { return f.Queue.Waiting == 0 })
}

// await waits until the figures are as expected.
func (p *program) await(expected func(figures) bool) figures {
	p.t.Helper()
	for {
		f := p.figures()
		if expected(f) {
			return f
		}
		select {
		case <-p.t.Context().Done():
			p.t.Fatal(p.t.Context().Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}
