package metrics

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
	gocmp "github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the files of testdata")

const (
	configure = "/hooks/api/v1/configure/configure-webhook"
	variant   = "/hooks/api/v1/configuration/configure-webhook"
)

// These must not show up in any export: the client's secret, and the path and query of a URL.
const (
	secret    = "s3cretOfAcme"
	secretURL = "https://hooks.example.com:8443/services/T0PSECRET?k=QU3RY"
)

// secrets are also the forms they have in an Authorization field.
var secrets = []string{secret, base64.StdEncoding.EncodeToString([]byte("acme:" + secret)), "T0PSECRET", "QU3RY"}

func leaks(text string) bool {
	return slices.ContainsFunc(secrets, func(part string) bool { return strings.Contains(text, part) })
}

// TestLeaks: the requests of the other tests contain the strings that these tests search for.
func TestLeaks(t *testing.T) {
	var sent atomic.Pointer[string]
	server := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		text, err := httputil.DumpRequest(r, true)
		if dump := string(text); err == nil && strings.Contains(dump, secretURL) {
			sent.Store(&dump)
		}
	}))
	send(t, server, outcomes[0])
	dump := sent.Load()
	if dump == nil {
		t.Fatal("the request has no webhook URL")
	}
	for _, part := range secrets[1:] {
		if !leaks(part) || !strings.Contains(*dump, part) {
			t.Errorf("%s is not in\n%s", part, *dump)
		}
	}
}

// busy is an error that asks the client to retry later.
type busy struct{}

func (busy) Error() string             { return "too fast" }
func (busy) RetryAfter() time.Duration { return time.Second }

// clients is a verifier that fails as the client's identifier says.
type clients struct{}

func (clients) Verify(_ context.Context, id, given string) (webhookcfg.Client, error) {
	switch {
	case id == "busy":
		return webhookcfg.Client{}, busy{}
	case id == "down":
		return webhookcfg.Client{}, fmt.Errorf("no row for %q", given)
	case id != "acme" || given != secret:
		return webhookcfg.Client{}, webhookcfg.ErrInvalidCredentials
	}
	return webhookcfg.Client{ID: id}, nil
}

// faulty is a store that fails as the entity says, with the URL in its error.
type faulty struct{ *store.Memory }

func (f faulty) Apply(ctx context.Context, c webhookcfg.Change) error {
	switch c.Scope.Entity() {
	case "down":
		return fmt.Errorf("driver: bad value %q", c.URL.Reveal())
	case "broken":
		panic("driver: bad value " + c.URL.Reveal())
	}
	return f.Memory.Apply(ctx, c)
}

// prober reaches one host.
type prober struct{}

func (prober) Probe(_ context.Context, _ string, target egress.URL) error {
	if strings.Contains(target.Reveal(), "gone.example.com") {
		return errors.New("dial " + target.Reveal())
	}
	return nil
}

func newHandler(t testing.TB, change func(o *webhookcfg.Options)) *webhookcfg.Handler {
	t.Helper()
	o := &webhookcfg.Options{
		BasePath: "/hooks",
		Reads:    true,
		Prober:   prober{},
		EntityExists: func(_ context.Context, _, entity string) (bool, error) {
			return entity != "unknown", nil
		},
	}
	if change != nil {
		change(o)
	}
	h, err := webhookcfg.NewHandler(faulty{store.NewMemory()}, clients{}, o)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func serve(t testing.TB, h http.Handler) (url string) {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.URL
}

// outcome is a request. There is one for each way in which a request can end.
type outcome struct {
	method, path, body string
	client             string // "": acme
	media              string // "": JSON
	want               int
}

func set(entity, url string) string {
	return fmt.Sprintf(`{"endpoint_id":%q,"webhook_url":%q}`, entity, url)
}

var outcomes = []outcome{
	{method: "POST", path: configure, body: set("e1", secretURL), want: 200},
	{method: "POST", path: variant, body: `{"webhook_url":"` + secretURL + `"}`, want: 200},
	{method: "GET", path: configure + "/e1", want: 200},
	{method: "GET", path: configure, want: 200},
	{method: "DELETE", path: configure + "/e1", want: 200},
	{method: "DELETE", path: configure, want: 200},
	{method: "POST", path: configure, body: `{"webhook":"` + secretURL + `"}`, want: 400},
	{method: "POST", path: configure, body: set("e1", "http"+strings.TrimPrefix(secretURL, "https")), want: 400},
	{method: "POST", path: configure, body: set("e1", strings.Replace(secretURL, "hooks", "gone", 1)), want: 400},
	{method: "DELETE", path: configure + "/e1%2f..", want: 400},
	{method: "DELETE", path: configure + "/e1", client: "unknown", want: 401},
	{method: "POST", path: configure, body: set("unknown", secretURL), want: 404},
	{method: "POST", path: configure, body: set("e1", secretURL+strings.Repeat("x", 20<<10)), want: 413},
	{method: "POST", path: configure, body: set("e1", secretURL), media: "text/plain", want: 415},
	{method: "DELETE", path: configure + "/e1", client: "busy", want: 429},
	{method: "POST", path: configure, body: set("broken", secretURL), want: 500},
	{method: "POST", path: configure, body: set("down", secretURL), want: 503},
	{method: "DELETE", path: configure + "/e1", client: "down", want: 503},
	{method: "DELETE", path: configure + "/e1/..", want: 404},
	{method: "PATCH", path: configure, want: 405},
}

// do sends the request of every outcome, and searches the responses.
func do(t testing.TB, h http.Handler) (url string) {
	t.Helper()
	var underWay sync.WaitGroup // a response can arrive before its handler has returned
	server := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		underWay.Add(1)
		defer underWay.Done()
		h.ServeHTTP(w, r)
	}))
	for _, o := range outcomes {
		status, shown := send(t, server, o)
		if status != o.want {
			t.Errorf("%s %s: got %d %s, want %d", o.method, o.path, status, shown, o.want)
		}
		if leaks(shown) && o.method != http.MethodGet { // a GET returns the URL to its owner
			t.Errorf("%s %s: the response leaks: %s", o.method, o.path, shown)
		}
	}
	underWay.Wait()
	return server
}

func send(t testing.TB, server string, o outcome) (status int, shown string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), o.method, server+o.path, strings.NewReader(o.body))
	if err != nil {
		t.Fatal(err)
	}
	r.SetBasicAuth(cmp.Or(o.client, "acme"), secret)
	r.Header.Set("Content-Type", cmp.Or(o.media, "application/json"))
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, fmt.Sprint(resp.Header, string(body))
}

// scrape returns the lines of a metrics endpoint that have a prefix.
func scrape(t testing.TB, url, prefix string) (lines []string) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if leaks(string(text)) {
		t.Errorf("the metrics leak:\n%s", text)
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, prefix) {
			lines = append(lines, strings.TrimSuffix(line, "\n"))
		}
	}
	return lines
}

// golden compares lines with a file.
func golden(t testing.TB, name string, got []string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(strings.Join(got, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(strings.TrimSuffix(strings.ReplaceAll(string(text), "\r\n", "\n"), "\n"), "\n")
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("%s: -want +got:\n%s", name, diff)
	}
}
