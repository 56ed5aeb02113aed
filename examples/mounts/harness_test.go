package mounts

import (
	"bufio"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/go-webhookcfg/auth"
	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
)

const (
	base      = "/hooks"
	configure = base + "/api/v1/configure/configure-webhook"
	variant   = base + "/api/v1/configuration/configure-webhook"
	secret    = "a-long-random-secret"
	alias     = base + "/webhook/"

	hookURL = "https://hooks.example.com/in"
)

// recorder is a store that records the changes that reach it.
type recorder struct {
	*store.Memory
	mu      sync.Mutex
	changes []webhookcfg.Change
}

func newRecorder() *recorder { return &recorder{Memory: store.NewMemory()} }

func (r *recorder) Apply(ctx context.Context, c webhookcfg.Change) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changes = append(r.changes, c)
	return r.Memory.Apply(ctx, c)
}

// take returns the changes since the last call, as "set all" or "unset entity e1".
func (r *recorder) take() (taken []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.changes {
		verb := "set"
		if c.URL.IsZero() {
			verb = "unset"
		}
		taken = append(taken, fmt.Sprintf("%s %s", verb, c.Scope))
	}
	r.changes = nil
	return taken
}

// options are the options that every mount expects, with reads and without probes.
func options() *webhookcfg.Options {
	return &webhookcfg.Options{
		BasePath:       base,
		VariantAliases: []string{strings.TrimPrefix(alias, base)},
		Reads:          true,
		ProbeMode:      webhookcfg.ProbeOff,
	}
}

func newHandler(t testing.TB, st webhookcfg.Store, o *webhookcfg.Options) *webhookcfg.Handler {
	t.Helper()
	clients, err := auth.NewStatic(auth.Credential{ID: "acme", Secrets: []auth.Secret{auth.NewSecret(secret)}})
	if err != nil {
		t.Fatal(err)
	}
	h, err := webhookcfg.NewHandler(st, clients, o)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// serve serves a mount over loopback.
func serve(t testing.TB, mounted http.Handler) (address string) {
	t.Helper()
	server := httptest.NewServer(mounted)
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// reply is a response as a test compares it.
type reply struct {
	Status int
	Header http.Header
	Body   string
}

// dial opens a connection for raw requests.
func dial(t testing.TB, address string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// raw sends a request byte for byte, since clients clean paths.
func raw(t testing.TB, address, request string) reply {
	t.Helper()
	conn := dial(t, address)
	defer conn.Close()
	return exchange(t, conn, bufio.NewReader(conn), request)
}

// exchange sends one request on a connection and reads its response.
func exchange(t testing.TB, w io.Writer, r *bufio.Reader, request string) reply {
	t.Helper()
	if _, err := io.WriteString(w, request); err != nil {
		t.Fatal(err)
	}
	method, _, _ := strings.Cut(request, " ")
	resp, err := http.ReadResponse(r, &http.Request{Method: method})
	if err != nil {
		t.Fatalf("no response to %q: %v", request, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{resp.StatusCode, resp.Header, string(body)}
}

// text is a request by acme as it goes over the wire.
func text(method, target, body string, fields ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: test\r\n", method, target)
	fmt.Fprintf(&b, "Authorization: Basic %s\r\n", base64.StdEncoding.EncodeToString([]byte("acme:"+secret)))
	for _, field := range fields {
		b.WriteString(field + "\r\n")
	}
	if body != "" {
		fmt.Fprintf(&b, "Content-Type: application/json\r\nContent-Length: %d\r\n", len(body))
	}
	return b.String() + "\r\n" + body
}
