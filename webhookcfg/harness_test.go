package webhookcfg_test

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

const (
	configure = "/api/v1/configure/configure-webhook"
	variant   = "/api/v1/configuration/configure-webhook"

	acme  = "acme:s3cret"
	other = "other:0ther"

	successBody = `{"message":"successful"}`
	hookURL     = "https://hooks.example.com/in"
)

// noon is the time of every change in the tests.
var noon = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// verifier knows acme and other.
type verifier func(ctx context.Context, id, secret string) (webhookcfg.Client, error)

func (v verifier) Verify(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
	return v(ctx, id, secret)
}

func verify(_ context.Context, id, secret string) (webhookcfg.Client, error) {
	if pair := id + ":" + secret; pair != acme && pair != other {
		return webhookcfg.Client{}, webhookcfg.ErrInvalidCredentials
	}
	return webhookcfg.Client{ID: id}, nil
}

// recorder is a store that records the changes that reached it.
type recorder struct {
	*store.Memory
	mu      sync.Mutex
	changes []string
}

func newRecorder() *recorder { return &recorder{Memory: store.NewMemory()} }

func (r *recorder) Apply(ctx context.Context, c webhookcfg.Change) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	verb := "set"
	if c.URL.IsZero() {
		verb = "unset"
	}
	r.changes = append(r.changes, fmt.Sprintf("%s %s %s", c.Client, verb, c.Scope))
	return r.Memory.Apply(ctx, c)
}

// take returns the changes since the last call.
func (r *recorder) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := r.changes
	r.changes = nil
	return taken
}

// options are the defaults of the tests: reads, a fixed clock, and no probe.
func options() *webhookcfg.Options {
	return &webhookcfg.Options{
		Reads:     true,
		ProbeMode: webhookcfg.ProbeOff,
		Now:       func() time.Time { return noon },
	}
}

func newHandler(t testing.TB, st webhookcfg.Store, o *webhookcfg.Options) *webhookcfg.Handler {
	t.Helper()
	return hooktest.NewHandler(t, st, verifier(verify), o)
}

func serve(t testing.TB, h http.Handler) (address string) {
	t.Helper()
	return hooktest.Serve(t, h).Listener.Addr().String()
}

// response is a response as a test compares it.
type response struct {
	Status int
	Header http.Header
	Body   string
}

// raw sends a request byte for byte and reads the response.
func raw(t testing.TB, address, request string) response {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	method, _, _ := strings.Cut(request, " ")
	resp, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		t.Fatalf("no response to %q: %v", request, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response{resp.StatusCode, resp.Header, string(body)}
}

// request is a request for raw, with the fields that every client sends.
func request(method, target, credentials, body string, fields ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: test\r\nConnection: close\r\n", method, target)
	if credentials != "" {
		fmt.Fprintf(&b, "Authorization: Basic %s\r\n", base64.StdEncoding.EncodeToString([]byte(credentials)))
	}
	isContentType := func(field string) bool { return strings.HasPrefix(field, "Content-Type:") }
	if !slices.ContainsFunc(fields, isContentType) {
		b.WriteString("Content-Type: application/json\r\n")
	}
	for _, field := range fields {
		b.WriteString(field + "\r\n")
	}
	if body != "" {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(body))
	}
	return b.String() + "\r\n" + body
}

// errorBody is the body of an error.
func errorBody(code, description string) string {
	return fmt.Sprintf(`{"error":"%s","error_description":"%s"}`, code, description)
}

// errorCode returns the code in the body of an error, "" in any other body.
func errorCode(body string) string {
	rest, ok := strings.CutPrefix(body, `{"error":"`)
	if !ok {
		return ""
	}
	code, _, _ := strings.Cut(rest, `"`)
	return code
}

var errBroken = errors.New("broken on purpose")

// eventInto returns an OnEvent that stores the last event in e.
func eventInto(e *webhookcfg.Event) func(context.Context, webhookcfg.Event) {
	return func(_ context.Context, got webhookcfg.Event) { *e = got }
}

// faulty is a store whose calls return the result of fault.
type faulty struct {
	webhookcfg.Store
	fault func(ctx context.Context) error
}

func (f faulty) Apply(ctx context.Context, _ webhookcfg.Change) error { return f.fault(ctx) }

func (f faulty) Resolve(ctx context.Context, _, _ string) (webhookcfg.Webhook, error) {
	return webhookcfg.Webhook{}, f.fault(ctx)
}

func (f faulty) List(ctx context.Context, _, _ string, _ int) (webhookcfg.Page, error) {
	return webhookcfg.Page{}, f.fault(ctx)
}

func setRequest() *http.Request {
	return setRequestOf(configure, `{"endpoint_id":"e1","webhook_url":"`+hookURL+`"}`)
}

func readRequest() *http.Request {
	r := httptest.NewRequest("GET", configure+"/e1", nil)
	r.SetBasicAuth("acme", "s3cret")
	return r
}

func listRequest() *http.Request {
	r := httptest.NewRequest("GET", configure, nil)
	r.SetBasicAuth("acme", "s3cret")
	return r
}

// retryError is the error of a throttle or of a busy prober.
type retryError struct{ wait time.Duration }

func (e retryError) Error() string { return "too fast" }

func (e retryError) RetryAfter() time.Duration { return e.wait }

type prober func(ctx context.Context, client string, target egress.URL) error

func (p prober) Probe(ctx context.Context, client string, target egress.URL) error {
	return p(ctx, client, target)
}
